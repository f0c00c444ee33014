//! A Linux-like TCP endpoint without I/O: time and randomness come in as arguments, packets go out through a sink.

#![cfg_attr(
    not(test),
    warn(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        clippy::expect_used,
        clippy::unwrap_used
    )
)]

pub mod cc;
pub mod clock;
pub mod flight;
pub mod options;
pub mod packet;
pub mod receiver;
pub mod sender;
pub mod steady;
pub mod window;
pub mod windowed;
