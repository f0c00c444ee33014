//! Congestion controls written for Linux's `struct tcp_congestion_ops`, loaded from the shared library that a C compiler made of
//! their source and of the headers in `src/sawtooth/module/include`.
//!
//! # Why there is `unsafe` here, and nowhere else
//!
//! A module is machine code of the user's. Nothing can be known of it: it is trusted, as it would be in a kernel, and it runs only
//! because the user named its source. What this crate itself owes is that its half of the interface is right: structures laid
//! out as the C compiler laid them out ([`layout`], compared when a library is opened), pointers that are valid during a call, one
//! thread in a library at a time. What a module breaks beyond that ends the process, so whoever runs one runs it in a process
//! apart, and [`watch`] leaves word of what it was doing.
//!
//! | file | what |
//! |---|---|
//! | `layout` | the C structures |
//! | `library` | a library opened, its parameters set, its controls listed |
//! | `connected` | a connection's state there and back, its hooks |
//! | `watch` | which hook runs, for who finds the process dead |

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
