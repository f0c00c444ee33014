//! What is open, by number.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::thread::LocalKey;

/// Handles and what they stand for; none is given twice.
pub struct Handles<T> {
    latest: u32,
    open: BTreeMap<u32, T>,
}

impl<T> Handles<T> {
    pub const fn new() -> Self {
        Handles { latest: 0, open: BTreeMap::new() }
    }
}

pub type Place<T> = LocalKey<RefCell<Handles<T>>>;

/// A handle for `one`.
pub fn add<T>(place: &'static Place<T>, one: T) -> u32 {
    place.with_borrow_mut(|handles| {
        handles.latest += 1;
        handles.open.insert(handles.latest, one);
        handles.latest
    })
}

/// What `act` says of what is behind the handle; a panic where nothing is.
pub fn with<T, A>(place: &'static Place<T>, handle: u32, act: impl FnOnce(&mut T) -> A) -> A {
    place.with_borrow_mut(|handles| match handles.open.get_mut(&handle) {
        Some(one) => act(one),
        None => panic!("nothing is open by the handle {handle}"),
    })
}

/// Gives up the handle; what was behind it is the caller's. A panic where nothing is.
pub fn remove<T>(place: &'static Place<T>, handle: u32) -> T {
    match place.with_borrow_mut(|handles| handles.open.remove(&handle)) {
        Some(one) => one,
        None => panic!("nothing is open by the handle {handle}"),
    }
}
