//! Tables as a page reads them: a description in text, with the columns' addresses in memory.

use std::cell::RefCell;

/// A column of numbers in its memory layout.
pub enum Values {
    Float(Vec<f64>),
    Integer(Vec<i64>),
    #[cfg(feature = "captures")]
    Unsigned(Vec<u64>),
    #[cfg(feature = "captures")]
    Medium(Vec<u32>),
    #[cfg(feature = "captures")]
    Small(Vec<u8>),
}

impl Values {
    /// numpy's name of the type, the address, and the length.
    fn location(&self) -> (&'static str, usize, usize) {
        match self {
            Values::Float(values) => ("f8", values.as_ptr().addr(), values.len()),
            Values::Integer(values) => ("i8", values.as_ptr().addr(), values.len()),
            #[cfg(feature = "captures")]
            Values::Unsigned(values) => ("u8", values.as_ptr().addr(), values.len()),
            #[cfg(feature = "captures")]
            Values::Medium(values) => ("u4", values.as_ptr().addr(), values.len()),
            #[cfg(feature = "captures")]
            Values::Small(values) => ("u1", values.as_ptr().addr(), values.len()),
        }
    }
}

pub type Table = (&'static str, Vec<(&'static str, Values)>);

thread_local! {
    static HANDED_OUT: RefCell<Vec<Table>> = const { RefCell::new(Vec::new()) };
}

/// Keeps tables in memory until the next call, and returns their addresses: `[[table, [[column, type, address, rows],
/// …]], …]`.
pub fn hand_out(tables: Vec<Table>) -> String {
    let described: Vec<_> = tables
        .iter()
        .map(|(table, columns)| {
            let columns: Vec<_> = columns
                .iter()
                .map(|(column, values)| {
                    let (kind, address, rows) = values.location();
                    serde_json::json!([column, kind, address, rows])
                })
                .collect();
            serde_json::json!([table, columns])
        })
        .collect();
    HANDED_OUT.replace(tables);
    serde_json::Value::from(described).to_string()
}
