//! The largest super-packet that segmentation offload takes, as in Linux 6.12 (`netdevice.h`, `sk_setup_caps`).

/// Largest packet of a device without another setting, in bytes (`GSO_LEGACY_MAX_SIZE`).
const LEGACY_MAX_SIZE: u32 = 65_536;
/// Room for headers in bytes (`MAX_TCP_HEADER`, in a kernel with tunnels and without wireless, as the engine `kernel`
/// builds it; with wireless it is 320).
pub(crate) const MAX_TCP_HEADER: u32 = 256;
/// Largest payload of a super-packet in bytes (`sk_gso_max_size`).
pub(crate) const MAX_PAYLOAD: u32 = LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER;
/// A super-packet holds this fraction of a second at the pacing rate: 1/1024 (`sk_pacing_shift`).
pub(crate) const PACING_SHIFT: u32 = 10;
