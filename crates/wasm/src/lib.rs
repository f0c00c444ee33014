//! The door of a page to the simulator and to the reading of captures: what `sawtooth._core` is to Python.
//!
//! Plain functions of numbers. What is open has a handle, never 0, for as long as it is not closed. Text and columns lie in
//! this module's memory: the caller writes text where [`text::input`] says, and reads an answer where [`text::answer`]
//! and [`text::answer_bytes`] say, before it calls anything else.

mod capture;
mod columns;
mod handles;
mod language;
mod limits;
mod simulation;
mod text;
