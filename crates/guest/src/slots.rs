//! The guests that are open, and their tables.
//!
//! `tw_table.client_open` is not told which table it belongs to. Each slot therefore has functions of
//! its own. A guest uses a slot until it is closed.
//!
//! A library that is opened again before it was unloaded would be the same one, with the same static
//! variables. It is therefore loaded by one thread at a time, and not before it was unloaded. A reload
//! loads it beside the earlier one, under another name.
//!
//! A table is made once for each slot and package and never freed, so that a program may look at it
//! after it was closed, and opening a guest again takes no further memory. A program in Rust needs none.

mod reload;

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use thalweg_capi::abi::{TwError, TwHandle, TwMethod, TwTable};
use thalweg_capi::error::argument;
use thalweg_capi::pointers::out;
use thalweg_capi::{ClientOpen, ClientSetLayouts, enter, new_table, set_layouts};
use thalweg_port::{
    Code, Failure, Guest, GuestPackage, Instance, Object, Package, epoch, insert, watch_forks,
};

use crate::core_table::CORE;
use crate::foreign::ForeignGuest;
use crate::opening::{self, Entry, OpenedGuest};

pub(crate) use self::reload::reload;

/// Maximum number of open guests.
const SLOTS: usize = 64;

/// How long opening waits until the same library is unloaded.
const UNLOADING: Duration = Duration::from_secs(10);

/// An open guest.
struct Open {
    path: PathBuf,
    /// The path as in the address, but absolute if it has a slash.
    given: PathBuf,
    /// How often it was opened and not closed.
    count: usize,
    package: &'static GuestPackage,
    guest: Arc<ForeignGuest>,
    table: Option<&'static TwTable>,
    clients: Vec<Weak<Instance>>,
}

impl Open {
    fn has_table(&self, table: *const TwTable) -> bool {
        self.table.is_some_and(|its| ptr::eq(its, table))
    }
}

/// A guest that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct Opening {
    slot: usize,
    /// See [`thalweg_port::epoch`].
    epoch: u64,
}

impl Opening {
    /// A new client.
    ///
    /// # Errors
    /// The errors of `client_open`.
    pub(crate) fn client(&self) -> Result<Arc<Instance>, Failure> {
        open_client(self.slot)
    }

    /// The guest stays open until [`close`] is called with this table.
    pub(crate) fn into_table(self) -> *const TwTable {
        let table = with_slots(|slots| slots.table(self.slot));
        std::mem::forget(self);
        table
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        // A forked child has no open guests.
        if self.epoch == epoch() {
            // It is open, because it is closed as often as it was opened.
            let _ = close_found(|_| Some(self.slot));
        }
    }
}

struct Slots {
    open: [Option<Open>; SLOTS],
    /// The free slots. The one that is free for longest is used first.
    free: VecDeque<usize>,
    /// The libraries that are loaded, or being loaded or unloaded.
    loaded: HashMap<u64, PathBuf>,
    /// The number of the next one.
    next_loaded: u64,
    /// The tables by slot and package.
    tables: HashMap<(usize, *const Package), &'static TwTable>,
}

// SAFETY: the key is an address that is only compared; tables are never changed.
unsafe impl Send for Slots {}

/// The slots of one process. They exist for ever.
struct OfProcess {
    /// See [`thalweg_port::epoch`].
    epoch: u64,
    slots: Mutex<Slots>,
    /// A library was opened or unloaded.
    changed: Condvar,
}

impl OfProcess {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A library that is loaded until this is dropped.
struct Loaded {
    number: u64,
    process: &'static OfProcess,
    /// The file of a library that is a copy in memory.
    _copy: Option<File>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.process.lock().loaded.remove(&self.number);
        self.process.changed.notify_all();
    }
}

/// The slots of this process, or of the one from which it was forked, or null.
static CURRENT: AtomicPtr<OfProcess> = AtomicPtr::new(ptr::null_mut());

/// A forked child begins with no open guests: a thread that does not exist in it may have locked the
/// parent's.
fn of_process() -> &'static OfProcess {
    let known = CURRENT.load(Ordering::Acquire);
    // SAFETY: a stored pointer is never freed.
    if let Some(current) = unsafe { known.as_ref() }
        && current.epoch == epoch()
    {
        return current;
    }
    watch_forks();
    let fresh = Box::into_raw(Box::new(OfProcess {
        epoch: epoch(),
        slots: Mutex::new(Slots {
            open: [const { None }; SLOTS],
            free: (0..SLOTS).collect(),
            loaded: HashMap::new(),
            next_loaded: 0,
            tables: HashMap::new(),
        }),
        changed: Condvar::new(),
    }));
    let stored = CURRENT.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire);
    let current = match stored {
        Ok(_) => fresh,
        Err(other) => {
            // SAFETY: it was not shared.
            drop(unsafe { Box::from_raw(fresh) });
            other
        }
    };
    // SAFETY: a stored pointer is never freed.
    unsafe { &*current }
}

fn with_slots<R>(f: impl FnOnce(&mut Slots) -> R) -> R {
    f(&mut of_process().lock())
}

impl Slots {
    /// Opens a guest once more.
    fn open_again(&mut self, path: &Path) -> Option<usize> {
        let is_its = |open: &Option<Open>| open.as_ref().is_some_and(|open| open.path == *path);
        let slot = self.open.iter().position(is_its)?;
        self.open[slot].as_mut()?.count += 1;
        Some(slot)
    }

    /// The table of a slot. Null if no guest is open there.
    fn table(&mut self, slot: usize) -> *const TwTable {
        let Some(open) = &mut self.open[slot] else {
            return ptr::null();
        };
        let package = open.package.package();
        let table = *self
            .tables
            .entry((slot, ptr::from_ref(package)))
            .or_insert_with(|| {
                let (client_open, client_set_layouts) = FUNCTIONS[slot];
                Box::leak(Box::new(new_table(
                    package,
                    client_open,
                    client_set_layouts,
                )))
            });
        open.table = Some(table);
        table
    }

    /// The guest of a table.
    fn of_table(&mut self, table: *const TwTable) -> Option<(usize, &mut Open)> {
        let open = self.open.iter_mut().enumerate();
        open.filter_map(|(slot, open)| Some((slot, open.as_mut()?)))
            .find(|(_, open)| open.has_table(table))
    }

    /// Adds a library that is about to be loaded.
    fn add_loaded(&mut self, process: &'static OfProcess, path: &Path) -> Loaded {
        let number = self.next_loaded;
        self.next_loaded += 1;
        self.loaded.insert(number, path.to_owned());
        Loaded {
            number,
            process,
            _copy: None,
        }
    }
}

/// The path in the address of a guest.
fn path_of(address: &str) -> Result<&str, Failure> {
    match address.split_once(':') {
        Some(("thread", "")) => Err(argument("the address thread: has no path")),
        Some(("thread", path)) => Ok(path),
        Some(("process" | "remote", _)) => Err(argument(format!(
            "{address}: this version opens only guests in the process, thread:PATH"
        ))),
        _ => Err(argument(format!(
            "{address:?} is not the address of a guest, thread:PATH"
        ))),
    }
}

/// Opens the guest of an address, or the one that is open for it.
///
/// # Errors
/// Those of `tw_address_open`.
pub(crate) fn open(address: &str) -> Result<Opening, Failure> {
    let slot = open_slot(address)?;
    let epoch = epoch();
    Ok(Opening { slot, epoch })
}

fn open_slot(address: &str) -> Result<usize, Failure> {
    let path = path_of(address)?;
    // Different paths of one library are one guest. A name without a slash is searched for.
    let (file, given) = match path.contains('/') {
        true => (
            std::fs::canonicalize(path).ok(),
            std::path::absolute(path).ok(),
        ),
        false => (None, None),
    };
    let file = file.unwrap_or_else(|| PathBuf::from(path));
    let loaded = match claim(path, &file)? {
        Claimed::Open(slot) => return Ok(slot),
        Claimed::ToLoad(loaded) => loaded,
    };
    let process = loaded.process;
    // Not under the lock: it runs code of the guest.
    let opened = opening::open(
        Entry::load(path.as_ref(), path)?,
        path,
        &CORE,
        Box::new(loaded),
    )?;
    let OpenedGuest { package, guest } = opened;
    let slots = &mut *process.lock();
    let Some(slot) = slots.free.pop_front() else {
        return Err(Code::Overloaded.because(format!("{SLOTS} guests are open")));
    };
    slots.open[slot] = Some(Open {
        path: file,
        given: given.unwrap_or_else(|| PathBuf::from(path)),
        count: 1,
        package,
        guest,
        table: None,
        clients: Vec::new(),
    });
    process.changed.notify_all();
    Ok(slot)
}

/// The next step of a thread that opens a library.
enum Claimed {
    /// It is open, in this slot.
    Open(usize),
    /// This thread loads it.
    ToLoad(Loaded),
}

/// Finds a guest that is open, or waits until its library may be loaded.
///
/// # Errors
/// `overloaded`: the library is still being unloaded, or loaded by another thread.
fn claim(path: &str, file: &Path) -> Result<Claimed, Failure> {
    let deadline = Instant::now() + UNLOADING;
    let process = of_process();
    let mut slots = process.lock();
    loop {
        if let Some(slot) = slots.open_again(file) {
            return Ok(Claimed::Open(slot));
        }
        if slots.loaded.values().all(|loaded| loaded != file) {
            return Ok(Claimed::ToLoad(slots.add_loaded(process, file)));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Code::Overloaded.because(format!(
                "the guest {path} was closed, and is still in use after {UNLOADING:?}"
            )));
        }
        let waited = process.changed.wait_timeout(slots, left);
        slots = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Closes the guest of a table, if it was closed as often as it was opened.
///
/// # Errors
/// `stale`: no guest with this table is open.
pub(crate) fn close(table: *const TwTable) -> Result<(), Failure> {
    close_found(|slots| Some(slots.of_table(table)?.0))
}

/// Closes the guest in the slot that `find` returns.
fn close_found(find: impl FnOnce(&mut Slots) -> Option<usize>) -> Result<(), Failure> {
    let closed = with_slots(|slots| {
        let found = find(slots);
        let found = found.and_then(|slot| Some((slot, slots.open[slot].as_mut()?)));
        let (slot, open) = found.ok_or_else(not_open)?;
        open.count -= 1;
        if open.count > 0 {
            return Ok(None);
        }
        slots.free.push_back(slot);
        Ok(slots.open[slot].take())
    })?;
    let Some(closed) = closed else {
        return Ok(());
    };
    // Not under the lock: it runs code of the guest.
    for client in closed.clients.iter().filter_map(Weak::upgrade) {
        client.close();
    }
    Ok(())
}

/// Why a table cannot be used.
fn not_open() -> Failure {
    Code::Stale.because("no guest with this table is open")
}

/// Why a slot of an open table has no guest.
fn no_guest() -> Failure {
    match epoch() {
        0 => Code::Closed.because("the guest was closed"),
        _ => Code::Forked.because("the guest was closed, or opened before fork()"),
    }
}

fn open_client(slot: usize) -> Result<Arc<Instance>, Failure> {
    let runtime = Instance::runtime()?;
    with_slots(|slots| {
        let open = slots.open[slot].as_mut().ok_or_else(no_guest)?;
        let guest: Arc<dyn Guest> = Arc::clone(&open.guest) as _;
        let client = Instance::open_guest(open.package, guest, runtime);
        if open.clients.len() == open.clients.capacity() {
            open.clients.retain(|client| client.strong_count() > 0);
        }
        open.clients.push(Arc::downgrade(&client));
        Ok(client)
    })
}

unsafe extern "C" fn client_open<const SLOT: usize>(
    client: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg.h requires of the caller what `enter` and `out` require.
    unsafe {
        enter(error, || {
            let client = out(client, "client")?;
            *client = insert(Object::Client(open_client(SLOT)?))?;
            Ok(())
        })
    }
}

unsafe extern "C" fn client_set_layouts<const SLOT: usize>(
    client: TwHandle,
    methods: *const TwMethod,
    method_count: u32,
    imports: *const TwMethod,
    import_count: u32,
    error: *mut TwError,
) -> u32 {
    let (methods, imports) = ((methods, method_count), (imports, import_count));
    // SAFETY: thalweg.h requires of the caller what `enter` and `set_layouts` require.
    unsafe {
        enter(error, || {
            let package = with_slots(|slots| slots.open[SLOT].as_ref().map(|open| open.package));
            let package = package.ok_or_else(no_guest)?.package();
            set_layouts(package, client, methods, imports)
        })
    }
}

macro_rules! functions {
    ($($slot:literal)*) => {
        [$((client_open::<$slot>, client_set_layouts::<$slot>)),*]
    };
}

/// The functions of each slot.
static FUNCTIONS: [(ClientOpen, ClientSetLayouts); SLOTS] = functions![
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
];
