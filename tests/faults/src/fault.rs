//! The plan: which resource is refused, and when.
//!
//! 1. The plan is set once, before the first operation, and does not change.
//! 2. Requests count only while an operation is inside [`during`]. Each entry starts at zero.
//! 3. Any thread may call [`is_refused`]. It allocates nothing and takes no lock, because the
//!    allocator calls it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use thalweg::runtime::{Handle, channel};

/// A resource that an operation requests from the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// A block of the global allocator.
    Allocation,
    /// A thread: `clone`, `clone3`.
    Thread,
    /// A mapping, for stacks of threads and actors.
    Mmap,
    /// A guard page of a stack.
    Mprotect,
    /// A guard or a trim of an actor's stack.
    Madvise,
    /// An eventfd, for parkers, ports and streams.
    Eventfd,
    /// An epoll instance, or an entry in one.
    Epoll,
    /// An expedited barrier. A sandbox that is applied after the start refuses it.
    Membarrier,
    /// A stack below `max_stacks`. Other actors temporarily use all but N - 1.
    Stack,
}

impl Resource {
    /// All resources.
    pub const ALL: [Self; 9] = [
        Self::Allocation,
        Self::Thread,
        Self::Mmap,
        Self::Mprotect,
        Self::Madvise,
        Self::Eventfd,
        Self::Epoll,
        Self::Membarrier,
        Self::Stack,
    ];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocation => "allocation",
            Self::Thread => "thread",
            Self::Mmap => "mmap",
            Self::Mprotect => "mprotect",
            Self::Madvise => "madvise",
            Self::Eventfd => "eventfd",
            Self::Epoll => "epoll",
            Self::Membarrier => "membarrier",
            Self::Stack => "stack",
        }
    }
}

/// Which requests are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Only the Nth request.
    Once,
    /// The Nth request and all later ones, until the operation has returned.
    Lasting,
}

impl Shape {
    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Lasting => "lasting",
        }
    }
}

/// The plan.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The resource.
    pub resource: Resource,
    /// Which of its requests.
    pub shape: Shape,
    /// N, from 1. 0: none is refused.
    pub nth: u64,
}

static PLAN: OnceLock<Plan> = OnceLock::new();
static ARMED: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// The size of the largest refused allocation.
static LARGEST: AtomicU64 = AtomicU64::new(0);

/// The number of stacks of a runtime whose stacks run out.
pub const STACKS: u64 = 8;
/// How long other actors use the stacks. An operation may wait for a stack or return an error; it
/// must not hang.
const HELD: Duration = Duration::from_millis(20);

/// Sets the plan. Call it once.
pub fn plan(plan: Plan) {
    assert!(PLAN.set(plan).is_ok(), "there is one plan");
}

/// Whether this request is refused.
pub fn is_refused(resource: Resource) -> bool {
    if !ARMED.load(Ordering::SeqCst) {
        return false;
    }
    let Some(plan) = PLAN.get() else {
        return false;
    };
    if plan.resource != resource {
        return false;
    }
    let number = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
    let refused = plan.nth > 0
        && match plan.shape {
            Shape::Once => number == plan.nth,
            Shape::Lasting => number >= plan.nth,
        };
    if refused {
        REFUSED.fetch_add(1, Ordering::SeqCst);
    }
    refused
}

/// The same for an allocation.
pub fn is_allocation_refused(size: usize) -> bool {
    let refused = is_refused(Resource::Allocation);
    if refused {
        LARGEST.fetch_max(size as u64, Ordering::SeqCst);
    }
    refused
}

/// How many requests were refused so far.
pub fn refused() -> u64 {
    REFUSED.load(Ordering::SeqCst)
}

/// The size of the largest refused allocation so far.
pub fn largest() -> u64 {
    LARGEST.load(Ordering::SeqCst)
}

/// Allows all requests from now on, whatever the plan. Returns whether requests were refused until
/// now.
pub fn disarm() -> bool {
    ARMED.swap(false, Ordering::SeqCst)
}

/// Whether [`during`] follows the plan. If not, it only runs its closure.
static ENABLED: AtomicBool = AtomicBool::new(false);

/// Sets whether [`during`] follows the plan from now on.
pub fn enable(on: bool) {
    ENABLED.store(on, Ordering::SeqCst);
}

/// Runs a part of an operation while requests are refused.
pub fn during<R>(part: impl FnOnce() -> R) -> R {
    struct Disarm;
    impl Drop for Disarm {
        fn drop(&mut self) {
            disarm();
        }
    }
    if !ENABLED.load(Ordering::SeqCst) {
        return part();
    }
    let _disarm = Disarm;
    COUNT.store(0, Ordering::SeqCst);
    ARMED.store(true, Ordering::SeqCst);
    part()
}

/// Like [`during`], for a part that runs on an existing runtime: only there can stacks run out.
pub fn during_on<R>(runtime: &Handle, part: impl FnOnce() -> R) -> R {
    let plan = PLAN.get().copied();
    match plan {
        Some(plan) if plan.resource == Resource::Stack && ENABLED.load(Ordering::SeqCst) => {
            let occupied = Occupied::take(runtime, plan.nth);
            let result = part();
            drop(occupied);
            result
        }
        _ => during(part),
    }
}

/// The stacks that other actors use.
struct Occupied {
    done: Arc<(Mutex<bool>, Condvar)>,
    releaser: Option<std::thread::JoinHandle<()>>,
}

impl Occupied {
    /// Occupies all but `nth - 1` stacks of `runtime`, and waits until the actors have started.
    fn take(runtime: &Handle, nth: u64) -> Self {
        let hold = if nth == 0 {
            0
        } else {
            (STACKS + 1).saturating_sub(nth)
        };
        let mut gates = Vec::new();
        let mut holders = Vec::new();
        for _ in 0..hold {
            let (gate, opened) = channel::<()>();
            let (here, begun) = channel();
            holders.push(runtime.spawn(move || {
                let _ = here.send(());
                let _ = opened.recv();
            }));
            if begun.recv().is_ok() {
                REFUSED.fetch_add(1, Ordering::SeqCst);
            }
            gates.push(gate);
        }
        let done = Arc::new((Mutex::new(false), Condvar::new()));
        let watched = Arc::clone(&done);
        let releaser = std::thread::spawn(move || {
            let (flag, changed) = &*watched;
            let flag = flag.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = changed.wait_timeout_while(flag, HELD, |done| !*done);
            drop(waited);
            drop(gates);
            for holder in holders {
                let _ = holder.join();
            }
        });
        Self {
            done,
            releaser: Some(releaser),
        }
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        let (flag, changed) = &*self.done;
        *flag.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        if let Some(releaser) = self.releaser.take() {
            let _ = releaser.join();
        }
    }
}
