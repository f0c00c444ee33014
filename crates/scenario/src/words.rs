//! Prepares text from others for use in our sentences: on one line, short, and compared with known names.

/// Control characters that move a terminal's cursor, change colours, or reverse the writing direction.
pub fn is_harmful(letter: char) -> bool {
    matches!(letter,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a terminal shows every character as a letter, on one line.
pub fn is_plain(text: &str) -> bool {
    !text.contains(is_harmful)
}

/// One short line: harmful characters are escaped as in JSON, and text longer than `most` characters is cut in the
/// middle.
pub fn plain(text: &str, most: usize) -> String {
    let count = text.chars().count();
    let mut cut: Vec<char> = text.chars().collect();
    if count > most {
        let end = most - most / 2 - 1;
        cut = cut[..most / 2].iter().copied().chain(['…']).chain(cut[count - end..].iter().copied()).collect();
    }
    let mut found = String::new();
    for letter in cut {
        if is_harmful(letter) {
            let mut halves = [0; 2];
            letter.encode_utf16(&mut halves).iter().for_each(|half| found.push_str(&format!("\\u{half:04x}")));
        } else {
            found.push(letter);
        }
    }
    found
}

/// Wrong text, shortened for a message.
pub fn printable(text: &str) -> String {
    plain(text, 60)
}

/// A fix for an unknown name: the most similar one, or all names if they are few.
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = known.into_iter().collect();
    if let Some(near) = nearest(word, &names) {
        return format!("did you mean \"{near}\"?");
    }
    if names.is_empty() {
        return "there is none to choose from".into();
    }
    let more = if names.len() > 20 { ", …" } else { "" };
    format!("choose one of: {}{more}", names[..names.len().min(20)].join(", "))
}

/// The known name that is most similar to `word`; None if none is similar.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // In a word of two letters, one may differ.
    let least = if word.chars().count() > 2 { 0.6 } else { 0.5 };
    let word: Vec<char> = word.to_lowercase().chars().take(200).collect();
    let mut best: Option<(f64, String, &str)> = None;
    for name in known {
        let lower = name.to_lowercase();
        let letters: Vec<char> = lower.chars().collect();
        let ratio = likeness(&letters, &word);
        let better = best.as_ref().is_none_or(|(most, other, _)| (ratio, &lower) >= (*most, other));
        if ratio >= least && better {
            best = Some((ratio, lower, name));
        }
    }
    best.map(|(_, _, name)| name)
}

/// Ratcliff and Obershelp's similarity: twice the letters in matching blocks divided by all letters, as Python's
/// `difflib` computes it.
fn likeness(one: &[char], other: &[char]) -> f64 {
    let all = one.len() + other.len();
    if all == 0 { 1.0 } else { 2.0 * matching(one, other, &common(other)) as f64 / all as f64 }
}

/// Letters that occur so often in a long word that they are ignored, as in `difflib`.
fn common(word: &[char]) -> Vec<char> {
    if word.len() < 200 {
        return Vec::new();
    }
    let often = |letter: &&char| word.iter().filter(|one| one == letter).count() > word.len() / 100 + 1;
    word.iter().filter(often).copied().collect()
}

fn matching(one: &[char], other: &[char], common: &[char]) -> usize {
    let (mut place, mut size) = ((0, 0), 0);
    let mut before = vec![0; other.len() + 1];
    for (i, letter) in one.iter().enumerate() {
        let mut now = vec![0; other.len() + 1];
        for (j, same) in other.iter().enumerate() {
            if letter == same && !common.contains(letter) {
                now[j + 1] = before[j] + 1;
                if now[j + 1] > size {
                    size = now[j + 1];
                    place = (i + 1 - size, j + 1 - size);
                }
            }
        }
        before = now;
    }
    if size == 0 {
        return 0;
    }
    let (i, j) = place;
    size + matching(&one[..i], &other[..j], common) + matching(&one[i + size..], &other[j + size..], common)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_matches_difflib() {
        assert_eq!(nearest("cubik", &["bbr", "cubic", "reno"]), Some("cubic"));
        assert_eq!(nearest("RTT", &["rate", "rtt"]), Some("rtt"));
        assert_eq!(nearest("xyz", &["rate", "rtt"]), None);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\n\u{202e}", 60), "a\\u000a\\u202e");
        assert_eq!(plain("abcdefghij", 5), "ab…ij");
    }
}
