//! Word of what a module is doing, for whoever finds the process dead: a page of memory that both share.
//!
//! Eight-byte words: which hook runs (`HOOK`, 0: none), of which library (`LIBRARY`); and once a signal has ended the process,
//! its number and the address of the instruction. From `BASES` on, where each library lies.

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

/// What runs, by its number in the page: a hook's place here, from 1 on.
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

/// One of the page's words.
pub fn word(index: usize) -> &'static AtomicU64 {
    let page = PAGE.load(Ordering::Relaxed);
    if page.is_null() {
        return &NOBODY_LOOKS[index];
    }
    assert!(index < WORDS);
    // SAFETY: `share` mapped `WORDS` words there, zeroed and aligned to a page, and they are never unmapped.
    unsafe { &*page.add(index) }
}

/// From here on word is left in the page that the file `descriptor` is, signals that end the process are noted there, and it ends with
/// its parent. To be called once, before a library is opened.
pub fn share(descriptor: c_int) -> io::Result<()> {
    let length = WORDS * size_of::<AtomicU64>();
    // SAFETY: a new mapping of a file, somewhere that nothing else has; the result is looked at.
    let page =
        unsafe { libc::mmap(null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, descriptor, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    PAGE.store(page.cast(), Ordering::Relaxed);
    // SAFETY: it only asks that this process ends with the one that started it, whatever a module does then.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    note_signals()
}

/// A stack that overflows leaves no room for the handler: it gets its own.
const HANDLERS_STACK: usize = 64 << 10;

fn note_signals() -> io::Result<()> {
    let stack = Box::leak(vec![0u8; HANDLERS_STACK].into_boxed_slice());
    let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: HANDLERS_STACK };
    // SAFETY: the stack is leaked, so it outlives every handler.
    if unsafe { libc::sigaltstack(&raw const stack, null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGXCPU] {
        // SAFETY: an all-zero `sigaction` is a valid one (no flags, an empty mask), and its handler is of the kind that
        // SA_SIGINFO asks for.
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

/// Notes the signal and where it struck, and lets it do what it would have done. Only calls what a handler may call.
extern "C" fn note_signal(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    word(SIGNAL).store(u64::from(signal.unsigned_abs()), Ordering::Relaxed);
    word(ADDRESS).store(instruction(context), Ordering::Relaxed);
    // SAFETY: both may be called in a handler; the signal is blocked until it returns, and then ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn instruction(context: *mut c_void) -> u64 {
    // SAFETY: the kernel hands a handler with SA_SIGINFO a `ucontext_t`.
    let registers = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    registers[libc::REG_RIP as usize].cast_unsigned()
}

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
fn instruction(context: *mut c_void) -> u64 {
    // SAFETY: the kernel hands a handler with SA_SIGINFO a `ucontext_t`.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.pc }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn instruction(_: *mut c_void) -> u64 {
    0
}
