//! The settings of a host for both ends of a connection.

/// The largest buffer that an application may set (`net.core.rmem_max`).
const RMEM_MAX: u64 = 212_992;

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
    /// Largest send buffer in bytes (`tcp_wmem[2]`).
    pub send_buffer: u64,
    /// False: every segment is acknowledged at once.
    pub delayed_ack: bool,
    /// RFC 2018. False at either end: loss detection falls back to NewReno (RFC 6582).
    pub sack: bool,
    /// RFC 7323.
    pub timestamps: bool,
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
            send_buffer: 4 << 20,
            delayed_ack: true,
            sack: true,
            timestamps: true,
            device: Device::Card,
        }
    }
}

impl HostOptions {
    /// The scale of this end's windows, large enough for its largest buffer (`tcp_select_initial_window`).
    pub fn window_scale(&self) -> u32 {
        let space = if self.fixed_buffer { self.receive_buffer / 2 } else { self.receive_buffer.max(RMEM_MAX) };
        space.max(1).ilog2().saturating_sub(15).min(14)
    }

    /// The window in bytes that a SYN offers, in whole segments of `mss` bytes if they fit
    /// (`tcp_select_initial_window`).
    pub fn first_window(&self, mss: u32) -> u64 {
        let mss = u64::from(mss);
        ((self.receive_buffer_start.min(self.receive_buffer) / 2) / mss * mss).min(65_535)
    }
}
