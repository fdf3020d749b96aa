//! The shared state of one search, and the searchers. The rules are in the module above.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::crew::{Crew, Sink, Stop};
use super::directory::{Directory, Item};
use super::file::{self, Broken, Kit};
use super::plan::Plan;
use super::progress::Counts;

/// Files in a bundle. Enough to make its allocation cheap, few enough that a huge directory is
/// never held in memory as a whole.
const BUNDLE: usize = 32;

/// Entries listed between two looks at the crew, where none of them is wanted.
const CHECK_ENTRIES: usize = 256;

/// How a search went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What this search counted.
    pub counts: Counts,
    /// Whether the search is incomplete: the crew or a sink stopped it, or a searcher panicked.
    pub stopped: bool,
}

struct Search<S> {
    plan: Arc<Plan>,
    workers: usize,
    /// The search is over; searchers look at it between files and while they read.
    stopped: AtomicBool,
    /// Fewer than `workers` are active. A hint: the truth is in `state`.
    room: AtomicBool,
    state: Mutex<State<S>>,
}

struct State<S> {
    pending: Vec<Item>,
    active: usize,
    kits: Vec<Kit<S>>,
    make: Box<dyn FnMut() -> S + Send>,
    counts: Counts,
    finish: Option<Box<dyn FnOnce(Outcome) + Send>>,
}

/// Begins a search of `plan` on `crew` and returns at once. `make` makes the sink of each searcher;
/// it is called under the search's lock and must not wait. `finish` is called by the last searcher,
/// exactly once, before the sinks are finished or, where the search was stopped, dropped.
///
/// ```
/// use std::sync::{Arc, mpsc};
/// use thalweg_search::walk::{self, Crew, Hit, Plan, Settings, Stop};
///
/// #[derive(Clone)]
/// struct Threads;
/// impl Crew for Threads {
///     fn spawn(&self, job: impl FnOnce(&Self) + Send + 'static) {
///         std::thread::spawn(move || job(&Threads));
///     }
///     fn check(&self) -> Result<(), Stop> {
///         Ok(())
///     }
///     fn workers(&self) -> usize {
///         2
///     }
/// }
///
/// let settings = Settings { fixed: true, ..Settings::default() };
/// let plan = Plan::new("[package]", env!("CARGO_MANIFEST_DIR").as_ref(), &settings).unwrap();
/// let (done, outcome) = mpsc::channel();
/// let (lines, found) = mpsc::channel();
/// walk::start(
///     Arc::new(plan),
///     &Threads,
///     move || {
///         let lines = lines.clone();
///         move |hit: &Hit<'_>| lines.send(hit.path.to_owned()).map_err(|_| Stop)
///     },
///     move |outcome| done.send(outcome).unwrap(),
/// );
/// assert!(!outcome.recv().unwrap().stopped);
/// assert!(found.iter().any(|path| path.ends_with("Cargo.toml")));
/// ```
pub fn start<C: Crew, S: Sink>(
    plan: Arc<Plan>,
    crew: &C,
    make: impl FnMut() -> S + Send + 'static,
    finish: impl FnOnce(Outcome) + Send + 'static,
) {
    let root = Directory::root(&plan);
    let workers = crew.workers().max(1);
    let search = Arc::new(Search {
        plan,
        workers,
        stopped: AtomicBool::new(false),
        room: AtomicBool::new(workers > 1),
        state: Mutex::new(State {
            pending: vec![Item::Directory(root)],
            active: 1,
            kits: Vec::new(),
            make: Box::new(make),
            counts: Counts::default(),
            finish: Some(Box::new(finish)),
        }),
    });
    let seat = Seat {
        search,
        counts: Counts::default(),
        place: Place::Waiting,
    };
    crew.spawn(move |crew| seat.work(crew));
}

impl<S: Sink> Search<S> {
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // No code under the lock leaves the state half done; `make` may panic, and changes nothing
        // then.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts items on the stack and fills the places that are free.
    fn push<C: Crew>(self: &Arc<Self>, crew: &C, items: impl IntoIterator<Item = Item>) {
        let mut free = {
            let mut state = self.lock();
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            let before = state.pending.len();
            state.pending.extend(items);
            let free = (state.pending.len() - before).min(self.workers - state.active);
            state.active += free;
            self.room
                .store(state.active < self.workers, Ordering::Relaxed);
            free
        };
        while free > 0 {
            free -= 1;
            let search = Arc::clone(self);
            let seat = Seat {
                search,
                counts: Counts::default(),
                place: Place::Waiting,
            };
            crew.spawn(move |crew| seat.work(crew));
        }
    }

    fn check<C: Crew>(&self, crew: &C) -> Result<(), Stop> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Stop);
        }
        crew.check()
    }

    fn stop(&self) {
        let dropped = {
            let mut state = self.lock();
            self.stopped.store(true, Ordering::Relaxed);
            mem::take(&mut state.pending)
        };
        drop(dropped);
    }
}

/// How far the holder of a seat has come.
enum Place {
    /// Its job has not begun.
    Waiting,
    /// It takes items.
    Working,
    /// It is not counted as active any more.
    Left,
}

/// One of the at most `workers` places of a search. Dropping it leaves the search, whatever the
/// reason.
struct Seat<S: Sink> {
    search: Arc<Search<S>>,
    counts: Counts,
    place: Place,
}

impl<S: Sink> Seat<S> {
    fn work<C: Crew>(mut self, crew: &C) {
        let Some((mut item, mut kit)) = self.begin() else {
            return;
        };
        loop {
            let done = match item {
                Item::Directory(directory) => self.directory(crew, &mut kit, directory),
                Item::Files(directory, names) => self.files(crew, &mut kit, &directory, names),
            };
            if done.is_err() {
                self.search.stop();
            }
            match self.next(kit) {
                Some(next) => (item, kit) = next,
                None => return,
            }
        }
    }

    /// The first item, and a kit for it; or leaves if others were quicker.
    fn begin(&mut self) -> Option<(Item, Kit<S>)> {
        self.place = Place::Working;
        let search = Arc::clone(&self.search);
        let mut state = search.lock();
        let Some(item) = state.pending.pop() else {
            let ending = self.leave(&mut state, None);
            drop(state);
            Ending::run(ending, &search);
            return None;
        };
        let kit = match state.kits.pop() {
            Some(kit) => kit,
            None => {
                let sink = (state.make)();
                drop(state);
                Kit::new(sink, &search.plan.matcher)
            }
        };
        Some((item, kit))
    }

    /// The next item; or gives the kit back and leaves.
    fn next(&mut self, kit: Kit<S>) -> Option<(Item, Kit<S>)> {
        let search = Arc::clone(&self.search);
        let mut state = search.lock();
        if let Some(item) = state.pending.pop() {
            return Some((item, kit));
        }
        let ending = self.leave(&mut state, Some(kit));
        drop(state);
        Ending::run(ending, &search);
        None
    }

    /// Gives the place up; the last one gets what ends the search. Under the lock: rule 3.
    fn leave(&mut self, state: &mut State<S>, kit: Option<Kit<S>>) -> Option<Ending<S>> {
        self.place = Place::Left;
        state.kits.extend(kit);
        state.counts.add(&self.counts);
        state.active -= 1;
        self.search.room.store(true, Ordering::Relaxed);
        if state.active > 0 {
            return None;
        }
        let unfinished = !state.pending.is_empty();
        let outcome = Outcome {
            counts: state.counts,
            stopped: unfinished || self.search.stopped.load(Ordering::Relaxed),
        };
        let finish = state.finish.take()?;
        Some(Ending {
            finish,
            outcome,
            kits: mem::take(&mut state.kits),
            make: mem::replace(
                &mut state.make,
                Box::new(|| unreachable!("the search has ended")),
            ),
        })
    }

    fn directory<C: Crew>(
        &mut self,
        crew: &C,
        kit: &mut Kit<S>,
        mut directory: Directory,
    ) -> Result<(), Stop> {
        let search = Arc::clone(&self.search);
        let plan = &search.plan;
        search.check(crew)?;
        let listing = match fs::read_dir(&directory.path) {
            Ok(listing) => listing,
            Err(error) => {
                self.unreadable(&directory.path, &error);
                return Ok(());
            }
        };
        directory.enter(plan, |path, error| self.unreadable(path, error));
        let directory = Arc::new(directory);
        let mut names = Vec::new();
        let mut below = Vec::new();
        for (number, entry) in listing.enumerate() {
            if number % CHECK_ENTRIES == CHECK_ENTRIES - 1 {
                search.check(crew)?;
            }
            let (entry, kind) = match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok((kind, entry)) => (entry, kind),
                Err(error) => {
                    // Listing goes on where it can: an entry may just have vanished.
                    self.unreadable(&directory.path, &error);
                    continue;
                }
            };
            // Links, pipes, sockets and devices are neither.
            if !kind.is_dir() && !kind.is_file() {
                continue;
            }
            let name = entry.file_name();
            if !directory.wants(plan, &name, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                below.push(Item::Directory(directory.child(&name)));
            } else {
                names.push(name);
            }
            if names.len() == BUNDLE || below.len() == BUNDLE {
                search.push(crew, below.drain(..));
                self.files(crew, kit, &directory, mem::take(&mut names))?;
            }
        }
        search.push(crew, below);
        self.files(crew, kit, &directory, names)
    }

    fn files<C: Crew>(
        &mut self,
        crew: &C,
        kit: &mut Kit<S>,
        directory: &Arc<Directory>,
        mut names: Vec<OsString>,
    ) -> Result<(), Stop> {
        let search = Arc::clone(&self.search);
        while let Some(name) = names.pop() {
            search.check(crew)?;
            if !names.is_empty() && search.room.load(Ordering::Relaxed) {
                let half = names.split_off(names.len() / 2);
                search.push(crew, [Item::Files(Arc::clone(directory), half)]);
            }
            let path = directory.path.join(&name);
            let progress = &search.plan.progress;
            let check = || search.check(crew);
            match file::search(&path, kit, &mut self.counts, progress, &check) {
                Ok(()) => {}
                Err(Broken::Stop) => return Err(Stop),
                Err(Broken::Read(error)) => self.unreadable(&path, &error),
            }
        }
        Ok(())
    }

    fn unreadable(&mut self, path: &Path, error: &io::Error) {
        let counts = Counts {
            unreadable: 1,
            ..Counts::default()
        };
        self.counts.add(&counts);
        let progress = &self.search.plan.progress;
        progress.note(format!("{}: {error}", path.display()));
        progress.add(&counts);
    }
}

impl<S: Sink> Drop for Seat<S> {
    fn drop(&mut self) {
        let search = Arc::clone(&self.search);
        match self.place {
            Place::Left => return,
            Place::Waiting => {}
            // Unwinding: what this searcher had in hand is lost, so the search is not whole any
            // more.
            Place::Working => search.stop(),
        }
        let ending = self.leave(&mut search.lock(), None);
        Ending::run(ending, &search);
    }
}

/// The end of a search. The last searcher takes it out of the state and runs it without the lock.
struct Ending<S> {
    finish: Box<dyn FnOnce(Outcome) + Send>,
    outcome: Outcome,
    kits: Vec<Kit<S>>,
    make: Box<dyn FnMut() -> S + Send>,
}

impl<S: Sink> Ending<S> {
    fn run(ending: Option<Ending<S>>, search: &Search<S>) {
        if let Some(Ending {
            finish,
            outcome,
            kits,
            make,
        }) = ending
        {
            search.plan.progress.ended();
            let stopped = outcome.stopped;
            finish(outcome);
            drop(make);
            if !stopped {
                kits.into_iter().for_each(|kit| kit.sink.finish());
            }
        }
    }
}
