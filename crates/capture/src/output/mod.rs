//! What is handed out: facts, tables, the rows of kept connections, and written captures.

pub mod analysis;
pub mod details;
pub mod facts;
pub mod loss_facts;
pub mod retention;
pub mod tables;
pub mod verdict;
pub mod writer;
