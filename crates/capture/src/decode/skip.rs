//! Why a frame gives no segment; access to bytes that may be missing.

/// Why a frame gives no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    NotTcp,
    /// The packet is inside a protocol that is not decoded, such as IPsec; with its name.
    Unread(&'static str),
    /// A fragment after the first, without a TCP header.
    Fragment,
    /// Too short or inconsistent to find the TCP header.
    Unreadable,
}

/// The `N` bytes at `at`.
pub fn field<const N: usize>(data: &[u8], at: usize) -> Result<[u8; N], Skip> {
    data.get(at..).and_then(<[u8]>::first_chunk).copied().ok_or(Skip::Unreadable)
}
