//! Congestion controls written for Linux's `struct tcp_congestion_ops`. A C compiler builds a shared library from their
//! source and the headers in `src/sawtooth/engines/cc_module/include`; this crate loads it.
//!
//! # Why only this crate has `unsafe`
//!
//! A module is machine code of the user. It cannot be checked, so it is trusted, as in a kernel, and it runs only
//! because the user named its source. This crate must keep its own side of the interface correct: structures have the
//! layout of the C compiler ([`layout`], compared when a library is opened), pointers are valid during a call, and one
//! thread at a time is in a library. If a module causes other damage, the process ends. Therefore modules run in a
//! separate process, and [`watch`] records what the module was doing.
//!
//! | file | what |
//! |---|---|
//! | `layout` | the C structures |
//! | `library` | opening a library, setting its parameters, listing its controls |
//! | `connected` | copying a connection's state to a module and back, calling its hooks |
//! | `watch` | which hook runs, for the process that finds this one dead |

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

mod connected;
mod layout;
mod library;
pub mod watch;

pub use connected::OVERRUN;
pub use library::{Fault, Library, Loaded};
