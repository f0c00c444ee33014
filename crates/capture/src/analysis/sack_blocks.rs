//! SACK blocks (RFC 2018): which report duplicates, and what is new in them.

/// The blocks of one acknowledgement, in its order; absent ones are empty.
pub type Blocks = [(i64, i64); 4];

/// Whether the first block reports duplicates (RFC 2883 section 4): it is below the acknowledgement or inside the next
/// block.
pub fn is_duplicate(blocks: &[(i64, i64)], ack: i64) -> bool {
    let (start, end) = blocks[0];
    end <= ack || blocks.get(1).is_some_and(|&(outer_start, outer_end)| outer_start <= start && end <= outer_end)
}

/// The parts of `start..end` that no block of `known` has: at most five, before, between and after the blocks.
pub fn news(start: i64, end: i64, known: &Blocks) -> impl Iterator<Item = (i64, i64)> {
    let mut sorted = *known;
    sorted.sort_unstable();
    let mut from = start;
    let mut pieces = [(0, 0); 5];
    for (piece, &(left, right)) in pieces.iter_mut().zip(&sorted) {
        let until = left.clamp(from.min(end), end);
        *piece = (from, until);
        from = from.max(right.min(end));
    }
    pieces[4] = (from, end);
    pieces.into_iter().filter(|&(start, end)| start < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dsack_is_first_block_below_ack_or_inside_second() {
        assert!(is_duplicate(&[(10, 20)], 20));
        assert!(is_duplicate(&[(30, 40), (30, 60)], 20));
        assert!(!is_duplicate(&[(30, 40), (50, 60)], 20));
        assert!(!is_duplicate(&[(30, 40)], 20));
    }

    #[test]
    fn news_is_only_outside_known_blocks() {
        let known = [(50, 60), (20, 30), (0, 0), (0, 0)];
        assert_eq!(news(10, 70, &known).collect::<Vec<_>>(), [(10, 20), (30, 50), (60, 70)]);
        assert_eq!(news(20, 30, &known).count(), 0);
        assert_eq!(news(55, 65, &known).collect::<Vec<_>>(), [(60, 65)]);
    }
}
