//! The settings of a host for both ends of a connection.

/// The largest buffer that an application may set (`net.core.rmem_max`).
const RMEM_MAX: u64 = 212_992;
/// `TCP_DEFAULT_SCALING_RATIO`, and `TCP_RMEM_TO_WIN_SCALE`.
const DEFAULT_SHARE: u64 = 128;
pub(crate) const SHARE_BITS: u32 = 8;

/// One end's settings. Defaults are those of Linux 6.12 unless a field says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// Ticks per second (`CONFIG_HZ`).
    pub hz: u32,
    /// Payload bytes of a full segment: 1448 on Ethernet with timestamps.
    pub mss: u32,
    /// Initial congestion window in segments (RFC 6928; `initcwnd`).
    pub initial_window: u32,
    /// First size of the receive buffer in bytes (`tcp_rmem[1]`).
    pub receive_buffer_start: u64,
    /// Largest receive buffer in bytes (`tcp_rmem[2]`).
    pub receive_buffer: u64,
    /// The application has set the receive buffer (`SO_RCVBUF`).
    pub fixed_buffer: bool,
    /// The share of the receive buffer that is window, by Linux's rules before 6.6 (`tcp_adv_win_scale`). `None`: the
    /// payload's share of the memory that segments take.
    pub adv_win_scale: Option<u32>,
    /// Largest send buffer in bytes (`tcp_wmem[2]`).
    pub send_buffer: u64,
    /// False: every segment is acknowledged at once.
    pub delayed_ack: bool,
    /// RFC 2018. False at either end: loss detection falls back to NewReno (RFC 6582).
    pub sack: bool,
    /// RFC 7323.
    pub timestamps: bool,
    /// Nothing paces what a congestion control asks to be paced: Linux before 4.13 left that to the `fq` queue.
    pub unpaced: bool,
    pub device: Device,
}

/// The device from which packets come: how much of the receive buffer they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// A card, or a veth pair. Neighboring packets share buffers.
    #[default]
    Card,
    /// A tun device: each packet has whole pages (drivers/net/tun.c, `tun_alloc_skb`).
    Tun,
}

impl Default for HostOptions {
    fn default() -> Self {
        HostOptions {
            hz: 250,
            mss: 1448,
            initial_window: 10,
            receive_buffer_start: 131_072,
            receive_buffer: 6 << 20,
            fixed_buffer: false,
            adv_win_scale: None,
            send_buffer: 4 << 20,
            delayed_ack: true,
            sack: true,
            timestamps: true,
            unpaced: false,
            device: Device::Card,
        }
    }
}

impl HostOptions {
    /// The share of the receive buffer that is window while no segment has arrived, in 256ths.
    pub fn window_share(&self) -> u64 {
        match self.adv_win_scale {
            None => DEFAULT_SHARE,
            Some(0) => 256,
            Some(scale) => 256 - (256 >> scale.min(9)),
        }
    }

    /// The window of `memory` bytes of receive buffer while no segment has arrived.
    pub(crate) fn first_share(&self, memory: u64) -> u64 {
        (memory * self.window_share()) >> SHARE_BITS
    }

    /// The scale of this end's windows, large enough for its largest buffer (`tcp_select_initial_window`).
    pub fn window_scale(&self) -> u32 {
        let space =
            if self.fixed_buffer { self.first_share(self.receive_buffer) } else { self.receive_buffer.max(RMEM_MAX) };
        space.max(1).ilog2().saturating_sub(15).min(14)
    }

    /// The window in bytes that a SYN offers, in whole segments of `mss` bytes if they fit
    /// (`tcp_select_initial_window`).
    pub fn first_window(&self, mss: u32) -> u64 {
        let mss = u64::from(mss);
        (self.first_share(self.receive_buffer_start.min(self.receive_buffer)) / mss * mss).min(65_535)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(adv_win_scale: Option<u32>) -> HostOptions {
        HostOptions { adv_win_scale, fixed_buffer: true, ..HostOptions::default() }
    }

    #[test]
    fn window_share_of_buffer_matches_linux() {
        let shares = [None, Some(0), Some(1), Some(2), Some(8), Some(31)].map(|scale| scaled(scale).window_share());
        assert_eq!(shares, [128, 256, 128, 192, 255, 256]);
    }

    #[test]
    fn first_window_and_scale_follow_window_share() {
        let small = |scale| HostOptions { receive_buffer: 80_000, ..scaled(scale) };
        assert_eq!(small(None).first_window(1_000), 40_000);
        assert_eq!(small(Some(2)).first_window(1_000), 60_000);
        assert_eq!([None, Some(0)].map(|scale| scaled(scale).window_scale()), [6, 7]);
    }
}
