//! Open objects, by number.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::thread::LocalKey;

/// Handles and their objects. A handle is never used twice.
pub struct Handles<T> {
    latest: u32,
    open: BTreeMap<u32, T>,
}

impl<T> Handles<T> {
    pub const fn new() -> Self {
        Handles { latest: 0, open: BTreeMap::new() }
    }
}

pub type Registry<T> = LocalKey<RefCell<Handles<T>>>;

/// Stores `one` and returns its handle.
pub fn add<T>(registry: &'static Registry<T>, one: T) -> u32 {
    registry.with_borrow_mut(|handles| {
        handles.latest += 1;
        handles.open.insert(handles.latest, one);
        handles.latest
    })
}

/// Calls `act` with the object of a handle. Panics if there is none.
pub fn with<T, A>(registry: &'static Registry<T>, handle: u32, act: impl FnOnce(&mut T) -> A) -> A {
    registry.with_borrow_mut(|handles| match handles.open.get_mut(&handle) {
        Some(one) => act(one),
        None => panic!("nothing is open by the handle {handle}"),
    })
}

/// Removes a handle and returns its object. Panics if there is none.
pub fn remove<T>(registry: &'static Registry<T>, handle: u32) -> T {
    match registry.with_borrow_mut(|handles| handles.open.remove(&handle)) {
        Some(one) => one,
        None => panic!("nothing is open by the handle {handle}"),
    }
}
