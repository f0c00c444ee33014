//! Reading and writing of captures.

mod build;
mod copies;
mod corpus;
mod damage;
mod decoding;
mod formats;
mod random;
mod seeds;
mod source;
mod tunnels;
mod writing;
