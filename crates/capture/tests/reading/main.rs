//! Reading and writing of captures.

mod build;
mod corpus;
mod damage;
mod decoding;
mod formats;
mod random;
mod seeds;
mod source;
mod writing;
