//! Replaces the library of an open guest, while its clients use it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use thalweg_capi::abi::TwTable;
use thalweg_capi::error::argument;
use thalweg_port::{Code, Failure, GuestPackage, Instance, epoch, native};

use super::{OfProcess, no_guest, not_open, of_process, path_of};
use crate::core_table::CORE;
use crate::files;
use crate::foreign::ForeignGuest;
use crate::opening::{self, Entry, OpenedGuest};

/// The guest that a thread reloads. No other thread can until this is dropped.
struct Reloading(Arc<ForeignGuest>);

impl Reloading {
    fn begin(guest: &Arc<ForeignGuest>) -> Result<Self, Failure> {
        match guest.begin_reload() {
            true => Ok(Self(Arc::clone(guest))),
            false => Err(Code::Overloaded.because("another thread reloads the guest")),
        }
    }
}

impl Drop for Reloading {
    fn drop(&mut self) {
        self.0.end_reload();
    }
}

/// Loads the library of an open guest again, or the one at another address, and moves the clients to it.
///
/// # Errors
/// Those of `tw_address_reload`.
pub(crate) fn reload(
    table: *const TwTable,
    address: Option<&str>,
    drain_deadline: u64,
) -> Result<(), Failure> {
    let path = address.map(path_of).transpose()?;
    let process = of_process();
    let (older, package_before, given) = begin(process, table)?;
    let given = path.map_or(given, PathBuf::from);
    let shown = given.display().to_string();
    if !shown.contains('/') {
        return Err(argument(format!(
            "the guest {shown} was searched for; reload it by an address with a slash"
        )));
    }
    let cannot_load = |why| argument(format!("cannot load the guest {shown}: {why}"));
    let given = std::path::absolute(&given).map_err(cannot_load)?;
    let path = given.canonicalize().map_err(cannot_load)?;
    let OpenedGuest { package, guest } = load(process, table, &path, &shown)?;
    may_reload(&guest, &shown)?;
    if let Some(difference) = package_before.difference(package) {
        return Err(Code::Version.because(format!(
            "the guest {shown} differs from the one that is open: {difference}"
        )));
    }
    // Otherwise another thread could move the clients to a later guest, and this one then back.
    let _newer = Reloading::begin(&guest)?;
    let clients = {
        let slots = &mut *process.lock();
        let (_, open) = slots.of_table(table).ok_or_else(not_open)?;
        if !Arc::ptr_eq(&open.guest, &older.0) {
            return Err(not_open());
        }
        (open.path, open.given) = (path, given);
        open.guest = Arc::clone(&guest);
        open.clients.clone()
    };
    // Not under the lock: dropping a client runs code of the guest.
    for client in clients.iter().filter_map(Weak::upgrade) {
        Instance::reload_guest(&client, Arc::clone(&guest) as _, drain_deadline);
    }
    Ok(())
}

/// Finds the guest of a table, its package and the path in its address.
fn begin(
    process: &'static OfProcess,
    table: *const TwTable,
) -> Result<(Reloading, &'static GuestPackage, PathBuf), Failure> {
    let slots = &mut *process.lock();
    let (_, open) = slots.of_table(table).ok_or_else(|| match epoch() {
        0 => not_open(),
        _ => no_guest(),
    })?;
    may_reload(&open.guest, &open.given.display().to_string())?;
    let reloading = Reloading::begin(&open.guest)?;
    Ok((reloading, open.package, open.given.clone()))
}

fn may_reload(guest: &ForeignGuest, shown: &str) -> Result<(), Failure> {
    match guest.stays() {
        None => Ok(()),
        Some(why) => Err(argument(format!(
            "the guest {shown} cannot be reloaded: {why}"
        ))),
    }
}

/// Loads a library beside those that are loaded.
fn load(
    process: &'static OfProcess,
    table: *const TwTable,
    path: &Path,
    shown: &str,
) -> Result<OpenedGuest, Failure> {
    let cannot_load = |why| argument(format!("cannot load the guest {shown}: {why}"));
    let mut loaded = {
        let slots = &mut *process.lock();
        let mut others = slots.open.iter().flatten();
        if others.any(|open| open.path == path && !open.has_table(table)) {
            return Err(argument(format!("{shown} is open as another guest")));
        }
        slots.add_loaded(process, path)
    };
    let name = files::other_name(path);
    let mut entry = Entry::load(name.as_os_str(), shown)?;
    if !entry.has_name(name.as_os_str()) {
        // It is the same file.
        native(|| drop(entry));
        let (name, copy) = files::copy(path).map_err(cannot_load)?;
        loaded._copy = Some(copy);
        entry = Entry::load(name.as_os_str(), shown)?;
        if !entry.has_name(name.as_os_str()) {
            return Err(argument(format!(
                "the function tw_guest of {shown} is in another library, which is loaded"
            )));
        }
    }
    opening::open(entry, shown, &CORE, Box::new(loaded))
}
