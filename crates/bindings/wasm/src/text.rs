//! Text from the page, and answers to it.

use std::cell::RefCell;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Address for the next call's input text of `bytes` bytes.
#[unsafe(no_mangle)]
extern "C" fn input(bytes: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(bytes, 0);
        input.as_mut_ptr()
    })
}

/// Takes the input text.
pub fn given() -> String {
    String::from_utf8_lossy(&bytes()).into_owned()
}

/// Takes the input as bytes.
pub fn bytes() -> Vec<u8> {
    INPUT.with_borrow_mut(std::mem::take)
}

/// Keeps `text` as the answer.
pub fn tell(text: String) {
    ANSWER.with_borrow_mut(|answer| *answer = text);
}

/// Address of the latest answer, in UTF-8.
#[unsafe(no_mangle)]
extern "C" fn answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// Length of the latest answer in bytes.
#[unsafe(no_mangle)]
extern "C" fn answer_bytes() -> usize {
    ANSWER.with_borrow(String::len)
}

/// Makes a panic's message the answer. The call itself ends in a trap, which has no message; the module must not be
/// used afterwards.
#[unsafe(no_mangle)]
extern "C" fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| tell(panic.to_string())));
}
