//! The interface between a page and the simulator and capture reader, as `sawtooth._core` is for Python.
//!
//! Plain functions of numbers. Each open object has a handle, which is never 0, until it is closed. Text and columns
//! are in this module's memory. The caller writes text at [`text::input`], and reads an answer at [`text::answer`] and
//! [`text::answer_bytes`] before it makes another call.

#[cfg(feature = "captures")]
mod capture;
mod columns;
mod handles;
#[cfg(feature = "simulator")]
mod language;
#[cfg(feature = "simulator")]
mod limits;
#[cfg(feature = "simulator")]
mod simulation;
mod text;
