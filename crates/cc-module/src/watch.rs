//! Records what a module is doing in a page of shared memory, for the parent that finds the process dead.
//!
//! The page has eight-byte words: the hook that runs (`HOOK`, 0: none) and its library (`LIBRARY`). If a signal ends
//! the process: the signal's number and the instruction's address. From `BASES` on: the load address of each library.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

pub const HOOK: usize = 0;
pub const LIBRARY: usize = 1;
pub const SIGNAL: usize = 2;
pub const ADDRESS: usize = 3;
pub const BASES: usize = 16;
pub const WORDS: usize = 512;

/// Names of hooks. The number in the page is the position here; 0 means that none runs.
pub const HOOKS: [&str; 14] = [
    "",
    "module_init",
    "init",
    "ssthresh",
    "undo_cwnd",
    "cong_avoid",
    "cong_control",
    "pkts_acked",
    "set_state",
    "cwnd_event",
    "in_ack_event",
    "min_tso_segs",
    "sndbuf_expand",
    "release",
];

static NOBODY_LOOKS: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

/// One word of the page.
pub fn word(index: usize) -> &'static AtomicU64 {
    let page = PAGE.load(Ordering::Relaxed);
    if page.is_null() {
        return &NOBODY_LOOKS[index];
    }
    assert!(index < WORDS);
    // SAFETY: `share` mapped `WORDS` zeroed words there, aligned to a page. They are never unmapped.
    unsafe { &*page.add(index) }
}

/// Starts recording in the page that the file `descriptor` contains, also of signals that end the process. The process
/// also ends when its parent ends. Call this once, before opening a library.
pub fn share(descriptor: c_int) -> io::Result<()> {
    let length = WORDS * size_of::<AtomicU64>();
    // SAFETY: a new mapping of a file at an unused address; the result is checked.
    let page =
        unsafe { libc::mmap(null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, descriptor, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    PAGE.store(page.cast(), Ordering::Relaxed);
    // SAFETY: this call only requests that the process ends with its parent, whatever a module does.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    note_signals()
}

/// Size of a separate stack for the signal handler, which is needed when the normal stack overflows.
const HANDLERS_STACK: usize = 64 << 10;

fn note_signals() -> io::Result<()> {
    let stack = Box::leak(vec![0u8; HANDLERS_STACK].into_boxed_slice());
    let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: HANDLERS_STACK };
    // SAFETY: the stack is leaked on purpose, so it outlives every handler.
    if unsafe { libc::sigaltstack(&raw const stack, null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGXCPU] {
        // SAFETY: an all-zero `sigaction` is valid (no flags, empty mask), and the handler has the signature that
        // SA_SIGINFO requires.
        let failed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(signal, &raw const action, null_mut()) != 0
        };
        if failed {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Records the signal and its address, then lets the default action happen. Calls only functions that are safe in a
/// handler.
extern "C" fn note_signal(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    word(SIGNAL).store(u64::from(signal.unsigned_abs()), Ordering::Relaxed);
    word(ADDRESS).store(instruction(context), Ordering::Relaxed);
    // SAFETY: both are safe in a handler. The signal is blocked until the handler returns, and then ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn instruction(context: *mut c_void) -> u64 {
    // SAFETY: the kernel passes a `ucontext_t` to a handler with SA_SIGINFO.
    let registers = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    registers[libc::REG_RIP as usize].cast_unsigned()
}

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
fn instruction(context: *mut c_void) -> u64 {
    // SAFETY: the kernel passes a `ucontext_t` to a handler with SA_SIGINFO.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.pc }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn instruction(_: *mut c_void) -> u64 {
    0
}
