//! A library of a guest, loaded by the dynamic loader.
//!
//! glibc's loader stops a forked child that loads a library if another thread was in the loader at the
//! fork. A program cannot know when a guest is unloaded. A fork therefore waits until no thread loads or
//! unloads a guest.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{CStr, OsStr};
use std::mem::ManuallyDrop;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};

/// Held by a thread that is in the dynamic loader, and across each fork.
static LOADER: Mutex<()> = Mutex::new(());

/// The lock of the thread that forks.
static FORKING: Forking = Forking(UnsafeCell::new(None));

struct Forking(UnsafeCell<Option<MutexGuard<'static, ()>>>);

// SAFETY: only the thread that has locked `LOADER` uses it, or its copy in the child.
unsafe impl Sync for Forking {}

thread_local! {
    /// How often this thread is in the loader. An initialiser of a guest may load another guest, or fork.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

fn lock() -> MutexGuard<'static, ()> {
    LOADER.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn before_fork() {
    if DEPTH.get() == 0 {
        let locked = lock();
        // SAFETY: this thread has locked `LOADER`.
        unsafe { *FORKING.0.get() = Some(locked) };
    }
}

/// Runs in the parent and in the child.
extern "C" fn after_fork() {
    if DEPTH.get() == 0 {
        // SAFETY: this thread has locked `LOADER`, in `before_fork`.
        let locked = unsafe { (*FORKING.0.get()).take() };
        drop(locked);
    }
}

/// No other thread forks or is in the loader while this lives.
struct InLoader(
    #[expect(dead_code, reason = "unlocked when dropped")] Option<MutexGuard<'static, ()>>,
);

impl InLoader {
    fn enter() -> Self {
        static REGISTER: Once = Once::new();
        REGISTER.call_once(|| {
            // SAFETY: `after_fork` uses one lock that this thread holds, which is allowed in a child of a
            // multi-threaded process.
            unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
        });
        let locked = (DEPTH.get() == 0).then(lock);
        DEPTH.set(DEPTH.get() + 1);
        Self(locked)
    }
}

impl Drop for InLoader {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// A loaded library. Dropping it unloads it.
pub(crate) struct GuestLibrary(ManuallyDrop<Library>);

impl GuestLibrary {
    /// # Safety
    /// The program trusts the initialisers of the library.
    pub(crate) unsafe fn open(name: &OsStr) -> Result<Self, libloading::Error> {
        let _loading = InLoader::enter();
        // SAFETY: see above.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }?;
        Ok(Self(ManuallyDrop::new(library)))
    }

    /// # Safety
    /// The symbol has this type, and is not used after the library was unloaded.
    pub(crate) unsafe fn get<T>(&self, symbol: &CStr) -> Result<Symbol<T>, libloading::Error> {
        // SAFETY: see above.
        unsafe { self.0.get(symbol) }
    }
}

impl Drop for GuestLibrary {
    fn drop(&mut self) {
        let _unloading = InLoader::enter();
        // SAFETY: it is used no more.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
