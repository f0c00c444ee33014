//! An opened module. Each has a copy of the library, so its global variables start from their initial values and its
//! parameters are its own.

use crate::connected::{Connection, NEEDS_ECN};
use crate::layout::{OFFSETS, Operations, TcpSock};
use crate::watch;
use libloading::os::unix::{Library as Shared, RTLD_LOCAL, RTLD_NOW};
use sawtooth_tcp::cc::module::{Connected, Module};
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::flight::Flight;
use sawtooth_tcp::window::Window;
use std::ffi::{CStr, CString, c_char, c_int, c_ulong};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Why a library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It cannot be read or loaded, or it was not built by this project.
    Unloadable(String),
    /// It has no parameter of this name. `known`: the parameters it has.
    NoParameter { name: String, known: Vec<String> },
    /// A parameter does not accept the value. `kind` is its type and `refused` the kernel's error number.
    BadValue { name: String, value: String, kind: String, refused: i32 },
    /// The function given to `module_init` failed, or there is none. With the reason.
    Refused(String),
    /// It registers no control of this name, or several and none was named. `known`: the controls it registers.
    NoControl { wanted: Option<String>, known: Vec<String> },
}

/// An opened library.
#[derive(Debug)]
pub struct Library {
    shared: Shared,
    /// The library's bytes, as a file in memory. The loader identifies a library by its path, which contains this
    /// descriptor, so the file stays open.
    _image: File,
    /// The library's number in the shared page, and the position of its words there.
    pub(crate) number: u64,
    hook: &'static AtomicU64,
    library: &'static AtomicU64,
    /// Whether a thread is in the library.
    entered: AtomicBool,
    pub(crate) jiffies: *mut c_ulong,
    pub(crate) current: *mut *mut TcpSock,
}

// SAFETY: the pointers are to variables of the library, which stays loaded as long as this value exists; only the
// thread that has entered the library uses them.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// Permission to call into a library.
pub(crate) struct HookGuard<'a>(&'a Library);

impl Drop for HookGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The record stays in the shared page.
            return;
        }
        self.0.hook.store(0, Ordering::Relaxed);
        self.0.entered.store(false, Ordering::Release);
    }
}

/// A library and the control chosen from it.
#[derive(Debug)]
pub struct Loaded {
    library: Arc<Library>,
    name: String,
    operations: *const Operations,
}

// SAFETY: the pointers are to data of the library, which is kept alive; see also [`Library`].
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Module for Loaded {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs_ecn(&self) -> bool {
        // SAFETY: the module registered them, and they stay valid as long as it is loaded.
        unsafe { (*self.operations).flags & NEEDS_ECN != 0 }
    }

    fn connect(&self, flight: &Flight, window: &mut Window, clock: Clock, seed: u64) -> Box<dyn Connected> {
        Box::new(Connection::new(self.library.clone(), self.operations, flight, window, clock, seed))
    }
}

impl Loaded {
    /// Opens the library at `path`, sets its parameters, lets it register its controls, and chooses the one called
    /// `name`, if it registers several.
    ///
    /// The library's code runs from here on.
    pub fn open(path: &Path, parameters: &[(String, String)], name: Option<&str>) -> Result<Loaded, Fault> {
        let library = Arc::new(Library::open(path)?);
        for (parameter, value) in parameters {
            library.set(parameter, value)?;
        }
        let controls = library.register()?;
        let known = || controls.iter().map(|(name, _)| name.clone()).collect();
        let found = match name {
            Some(wanted) => controls.iter().find(|(name, _)| name == wanted),
            None if controls.len() == 1 => controls.first(),
            None => None,
        };
        let Some((name, operations)) = found else {
            return Err(Fault::NoControl { wanted: name.map(str::to_owned), known: known() });
        };
        Ok(Loaded { library, name: name.clone(), operations: *operations })
    }
}

impl Library {
    fn open(path: &Path) -> Result<Library, Fault> {
        let cannot = |error: &dyn std::fmt::Display| Fault::Unloadable(error.to_string());
        let image = image(path).map_err(|error| cannot(&error))?;
        let own = format!("/proc/self/fd/{}", image.as_raw_fd());
        // SAFETY: its constructors run here. They add entries to the library's own lists (`runtime.c`); the user's
        // source may have constructors too.
        let shared = unsafe { Shared::open(Some(own), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| cannot(&error))?;
        // SAFETY: `runtime.c` declares these variables with these types.
        let (layout, jiffies, current) = unsafe {
            let layout = shared.get::<*const [u32; OFFSETS.len()]>(b"sawtooth_layout\0");
            let layout = *layout.map_err(|error| cannot(&error))?;
            let jiffies = *shared.get::<*mut c_ulong>(b"jiffies\0").map_err(|error| cannot(&error))?;
            let current = shared.get::<*mut *mut TcpSock>(b"sawtooth_current\0");
            (*layout, jiffies, *current.map_err(|error| cannot(&error))?)
        };
        if layout.map(|offset| offset as usize) != OFFSETS {
            return Err(Fault::Unloadable("it was compiled for another version of the interface".to_owned()));
        }
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        if let Ok(place) = usize::try_from(number)
            && watch::BASES + place < watch::WORDS
        {
            watch::word(watch::BASES + place).store(base(jiffies), Ordering::Relaxed);
        }
        let (hook, library) = (watch::word(watch::HOOK), watch::word(watch::LIBRARY));
        Ok(Library { shared, _image: image, number, hook, library, entered: AtomicBool::new(false), jiffies, current })
    }

    /// Records that `hook` runs (see [`watch::HOOKS`]) and that this thread is alone in the library until the returned
    /// value is dropped.
    ///
    /// # Panics
    ///
    /// If another thread is in the library: a library belongs to one simulation, which runs one hook at a time.
    pub(crate) fn enter(&self, hook: u64) -> HookGuard<'_> {
        assert!(!self.entered.swap(true, Ordering::Acquire), "two hooks of a module at once");
        self.library.store(self.number, Ordering::Relaxed);
        self.hook.store(hook, Ordering::Relaxed);
        HookGuard(self)
    }

    fn function<T: Copy>(&self, name: &[u8]) -> Result<T, Fault> {
        // SAFETY: `runtime.c` defines the requested functions with the types used here.
        unsafe { self.shared.get::<T>(name) }.map(|found| *found).map_err(|error| Fault::Unloadable(error.to_string()))
    }

    /// Names and types of the module's parameters.
    fn parameters(&self) -> Result<Vec<(String, String)>, Fault> {
        type Nth = unsafe extern "C" fn(u32, *mut *const c_char) -> *const c_char;
        let nth: Nth = self.function(b"sawtooth_parameter\0")?;
        let mut found = Vec::new();
        for n in 0.. {
            let mut kind = std::ptr::null();
            // SAFETY: the function walks a list that the constructors made, and returns strings of the library.
            let name = unsafe { nth(n, &raw mut kind) };
            if name.is_null() {
                break;
            }
            found.push((text(name), text(kind)));
        }
        Ok(found)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), Fault> {
        type Set = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
        let known = self.parameters()?;
        let Some((_, kind)) = known.iter().find(|(known, _)| known == name) else {
            let known = known.into_iter().map(|(name, _)| name).collect();
            return Err(Fault::NoParameter { name: name.to_owned(), known });
        };
        let bad =
            |refused| Fault::BadValue { name: name.to_owned(), value: value.to_owned(), kind: kind.clone(), refused };
        let (Ok(c_name), Ok(c_value)) = (CString::new(name), CString::new(value)) else { return Err(bad(0)) };
        let set: Set = self.function(b"sawtooth_set_parameter\0")?;
        let alone = self.enter(1);
        // SAFETY: both strings outlive the call; the parameter's own `set` reads them.
        let refused = unsafe { set(c_name.as_ptr(), c_value.as_ptr()) };
        drop(alone);
        if refused == 0 { Ok(()) } else { Err(bad(refused)) }
    }

    /// Runs the function given to `module_init`. Returns the controls that it registered.
    fn register(&self) -> Result<Vec<(String, *const Operations)>, Fault> {
        let begin: unsafe extern "C" fn() -> c_int = self.function(b"sawtooth_begin\0")?;
        let alone = self.enter(1);
        // SAFETY: the module's initialisation, called once.
        let refused = unsafe { begin() };
        drop(alone);
        let refusal: *const c_char = self.function(b"sawtooth_refusal\0")?;
        let refusal = text(refusal);
        if !refusal.is_empty() {
            return Err(Fault::Refused(refusal));
        }
        if refused == -libc::ENOENT {
            return Err(Fault::Refused("nothing begins it: it has no module_init".to_owned()));
        }
        if refused != 0 {
            return Err(Fault::Refused(format!("its module_init returned {refused}")));
        }
        let count: *const u32 = self.function(b"sawtooth_count\0")?;
        let registered: *const *const Operations = self.function(b"sawtooth_registered\0")?;
        // SAFETY: `runtime.c` returns how many entries of the array it has filled, with structures of the library.
        let found: Vec<_> = unsafe {
            (0..*count as usize).map(|n| *registered.add(n)).map(|ops| (text((*ops).name.as_ptr()), ops)).collect()
        };
        if found.is_empty() {
            return Err(Fault::Refused("it registers no congestion control".to_owned()));
        }
        Ok(found)
    }
}

/// A copy of a string of the library.
fn text(of: *const c_char) -> String {
    if of.is_null() {
        return String::new();
    }
    // SAFETY: strings from `runtime.c` end with a zero byte; it refuses names longer than their field.
    unsafe { CStr::from_ptr(of) }.to_string_lossy().into_owned()
}

/// A copy of a file in memory, without a name. Nothing of it remains after the process ends.
fn image(path: &Path) -> io::Result<File> {
    let bytes = std::fs::read(path)?;
    // SAFETY: the name is a valid string; the descriptor is new and only used here.
    let mut image = unsafe {
        let descriptor = libc::memfd_create(c"sawtooth-module".as_ptr(), libc::MFD_CLOEXEC);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from_raw_fd(descriptor)
    };
    image.write_all(&bytes)?;
    Ok(image)
}

/// The load address of the library that contains `symbol`.
fn base<T>(symbol: *const T) -> u64 {
    // SAFETY: an all-zero `Dl_info` is valid, and `dladdr` only fills it in.
    unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(symbol.cast(), &raw mut found) == 0 { 0 } else { found.dli_fbase as u64 }
    }
}
