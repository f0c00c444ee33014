//! Windowed minimum over three sub-windows (Kathleen Nichols' estimator, as in lib/minmax.c).

/// The least value seen in the last `window` ticks, to a quarter of the window.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMin {
    samples: [(u32, u32); 3],
}

impl WindowedMin {
    pub fn new(now: u32, value: u32) -> Self {
        WindowedMin { samples: [(now, value); 3] }
    }

    pub fn get(&self) -> u32 {
        self.samples[0].1
    }

    /// Takes `value` seen at tick `now`; returns the minimum. `window` is in the same ticks.
    pub fn update(&mut self, window: u32, now: u32, value: u32) -> u32 {
        let s = &mut self.samples;
        if value <= s[0].1 || now.wrapping_sub(s[2].0) > window {
            *self = Self::new(now, value);
            return value;
        }
        if value <= s[1].1 {
            s[2] = (now, value);
            s[1] = s[2];
        } else if value <= s[2].1 {
            s[2] = (now, value);
        }
        let age = now.wrapping_sub(s[0].0);
        if age > window {
            s[0] = s[1];
            s[1] = s[2];
            s[2] = (now, value);
            if now.wrapping_sub(s[0].0) > window {
                s[0] = s[1];
                s[1] = s[2];
            }
        } else if s[1].0 == s[0].0 && age > window / 4 {
            s[2] = (now, value);
            s[1] = s[2];
        } else if s[2].0 == s[1].0 && age > window / 2 {
            s[2] = (now, value);
        }
        s[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_lasts_one_window_and_then_gives_way_to_the_second_best() {
        let mut min = WindowedMin::new(0, 10);
        assert_eq!(min.update(100, 30, 20), 10);
        assert_eq!(min.update(100, 60, 30), 10);
        assert_eq!(min.update(100, 101, 40), 20);
        assert_eq!(min.update(100, 102, 5), 5);
    }
}
