//! Text from the page, and answers to it.

use std::cell::RefCell;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Where the next call's text belongs, of so many bytes.
#[unsafe(no_mangle)]
extern "C" fn input(bytes: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(bytes, 0);
        input.as_mut_ptr()
    })
}

/// Takes what was written there.
pub fn given() -> String {
    String::from_utf8_lossy(&bytes()).into_owned()
}

/// The same, where it is no text.
pub fn bytes() -> Vec<u8> {
    INPUT.with_borrow_mut(std::mem::take)
}

/// Keeps `text` for the caller.
pub fn tell(text: String) {
    ANSWER.with_borrow_mut(|answer| *answer = text);
}

/// Where the latest answer is, in UTF-8.
#[unsafe(no_mangle)]
extern "C" fn answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// And how many bytes it has.
#[unsafe(no_mangle)]
extern "C" fn answer_bytes() -> usize {
    ANSWER.with_borrow(String::len)
}

/// What a panic says becomes the answer: the call itself ends in a trap, which says nothing, and the module must not be used again.
#[unsafe(no_mangle)]
extern "C" fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| tell(panic.to_string())));
}
