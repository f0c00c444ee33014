//! Why a frame gives no segment; bytes of it that may be missing.

/// Why a frame gives no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    NotTcp,
    /// In something that is not looked into, by its name.
    Unread(&'static str),
    /// A fragment after the first: it has no TCP header.
    Fragment,
    /// Too short or too contradictory to find the TCP header in it.
    Unreadable,
}

/// The `N` bytes at `at`.
pub fn field<const N: usize>(data: &[u8], at: usize) -> Result<[u8; N], Skip> {
    data.get(at..).and_then(<[u8]>::first_chunk).copied().ok_or(Skip::Unreadable)
}
