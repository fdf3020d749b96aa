//! The task of an object's turns ([`Run`]). Its memory is used again by the next turn.
//!
//! 1. A turn is a task without a handle. When its last reference is dropped, no queue, waker or
//!    thread can reach it. Its memory then returns to the [`TurnSlot`] of its object, and the next
//!    turn takes it from there.
//! 2. A slot has at most one task. An object may be scheduled again while its last turn is ending;
//!    that turn gets new memory, and one of the two tasks is freed.
//! 3. A slot is closed when its object is dropped. A task that returns to a closed slot is freed.
//! 4. The reused task keeps its ID. A task that other threads could reach by its ID, because it has
//!    a [`Control`](crate::control::Control), is not reused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::thread;

use super::{Header, OnShortage, Task, VTable, apply_exit_signal, drop_quietly};
use crate::id::ActorId;
use crate::reason::{ExitReason, JoinError};
use crate::sections;
use crate::shim::{AtomicPtr, Ordering, UnsafeCell};
use crate::task::state::TaskState;
use crate::worker::{self, Worker};

/// An object that runs on a worker each time it is scheduled, and has no stack in between.
pub trait Run: Send + Sync + 'static {
    /// Runs one turn, on an actor's stack, where it may wait, or on the worker's
    /// ([`TurnSlot::on_worker_stack`]). A panic calls the process's panic hook and ends the turn; it has
    /// no other effect.
    fn run(self: Arc<Self>);

    /// Called instead of [`run`](Self::run) if no stack became free for the turn while its worker
    /// was idle. This happens, for example, if every stack belongs to an actor that waits for this
    /// object. The call runs on the worker's own stack and must not wait. It ends the turn:
    /// schedule another turn if there is still work to do.
    fn refuse(self: Arc<Self>);

    /// Where the memory of the object's turns is kept for reuse.
    fn turn_slot(&self) -> &TurnSlot;
}

/// Keeps the memory of an object's turns for reuse, so that a turn allocates nothing. The object
/// has one ([`Run::turn_slot`]).
#[derive(Debug)]
pub struct TurnSlot(Arc<SlotState>);

impl Default for TurnSlot {
    fn default() -> Self {
        Self::new(false)
    }
}

impl TurnSlot {
    /// The slot of an object whose turns never wait and need a deep stack, for example because they call
    /// other languages. They run on the worker's own stack, as in [`native`](crate::native), which also
    /// saves the switch to an actor's.
    pub fn on_worker_stack() -> Self {
        Self::new(true)
    }

    fn new(on_worker_stack: bool) -> Self {
        Self(Arc::new(SlotState {
            task: AtomicPtr::new(ptr::null_mut()),
            on_worker_stack,
        }))
    }
}

impl Drop for TurnSlot {
    /// Rule 3.
    fn drop(&mut self) {
        if let Some(task) = self.0.replace(CLOSED) {
            // SAFETY: the swap took the task out of the slot.
            drop(unsafe { Box::from_raw(task.as_ptr()) });
        }
    }
}

#[derive(Debug)]
struct SlotState {
    /// A [`TurnCell`], null or [`CLOSED`].
    task: AtomicPtr<TurnCell>,
    on_worker_stack: bool,
}

/// Marks a closed slot. No memory has this address.
const CLOSED: *mut TurnCell = ptr::without_provenance_mut(1);

impl SlotState {
    fn replace(&self, with: *mut TurnCell) -> Option<NonNull<TurnCell>> {
        NonNull::new(self.task.swap(with, Ordering::AcqRel))
    }

    /// Keeps a task. Returns `false` if the slot is closed or has one.
    fn put(&self, task: *mut TurnCell) -> bool {
        let empty = ptr::null_mut();
        self.task
            .compare_exchange(empty, task, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }
}

#[repr(C)]
struct TurnCell {
    header: Header,
    /// The object, until the turn starts. It belongs to the owner of the stage (`task`'s rule 3).
    object: UnsafeCell<Option<Arc<dyn Run>>>,
    slot: Arc<SlotState>,
}

static ON_ACTOR_STACK: VTable = VTable {
    run,
    cancel,
    take: |_, _| unreachable!("a turn has no handle"),
    discard: |_| {},
    free,
};

static ON_WORKER_STACK: VTable = VTable {
    run: run_on_worker_stack,
    ..ON_ACTOR_STACK
};

impl Task {
    /// The task of a turn that is in no queue yet.
    #[inline]
    pub(crate) fn turn_of(object: Arc<dyn Run>) -> Self {
        let slot = &object.turn_slot().0;
        let cell = match slot.replace(ptr::null_mut()) {
            Some(cell) => cell,
            None => new_cell(Arc::clone(slot)),
        };
        // SAFETY: rule 1: no other thread can reach the task.
        unsafe { cell.as_ref() }
            .object
            .with_mut(|place| unsafe { *place = Some(object) });
        Self(cell.cast())
    }
}

#[cold]
fn new_cell(slot: Arc<SlotState>) -> NonNull<TurnCell> {
    NonNull::from(Box::leak(Box::new(TurnCell {
        header: new_header(ActorId::next(), slot.on_worker_stack),
        object: UnsafeCell::new(None),
        slot,
    })))
}

fn new_header(id: ActorId, on_worker_stack: bool) -> Header {
    let shortage = Some(OnShortage::Refuse);
    let vtable = match on_worker_stack {
        true => &ON_WORKER_STACK,
        false => &ON_ACTOR_STACK,
    };
    let mut header = Header::new(vtable, TaskState::detached(), shortage, id, None);
    header.on_worker_stack = on_worker_stack;
    header
}

/// Takes the object out of the task.
///
/// # Safety
/// The caller owns the stage of the task (`task`'s rule 3).
unsafe fn take_object(header: NonNull<Header>) -> Option<Arc<dyn Run>> {
    // SAFETY: the header is the first field of its cell, and the object belongs to the caller.
    unsafe { header.cast::<TurnCell>().as_ref() }
        .object
        .with_mut(|place| unsafe { (*place).take() })
}

/// # Safety
/// The contract of `VTable::run`.
unsafe fn run(header: NonNull<Header>) -> Option<ExitReason> {
    let in_turn = |object: Arc<dyn Run>| {
        let turn = AssertUnwindSafe(|| {
            let _guard = sections::NoAllocationPoints::begin();
            object.run();
        });
        sections::user_code(|| catch_unwind(turn))
    };
    // SAFETY: the caller's contract.
    unsafe { run_in(header, in_turn) }
}

/// # Safety
/// The contract of `VTable::run`.
unsafe fn run_on_worker_stack(header: NonNull<Header>) -> Option<ExitReason> {
    let in_turn = |object: Arc<dyn Run>| {
        let turn = AssertUnwindSafe(|| object.run());
        sections::user_code_on_worker_stack(|| catch_unwind(turn))
    };
    // SAFETY: the caller's contract.
    unsafe { run_in(header, in_turn) }
}

/// Runs a turn: calls `in_turn`, which catches a panic.
///
/// # Safety
/// The contract of `VTable::run`.
#[inline(always)]
unsafe fn run_in(
    header: NonNull<Header>,
    in_turn: impl FnOnce(Arc<dyn Run>) -> thread::Result<()>,
) -> Option<ExitReason> {
    // SAFETY: the caller's contract.
    let Some(object) = (unsafe { take_object(header) }) else {
        unreachable!("a turn is started once");
    };
    let output = in_turn(object);
    // SAFETY: `task`'s rule 1.
    let raised = unsafe { header.as_ref() }.raised.get();
    if output.is_ok() && !raised {
        return None;
    }
    end_badly(Task(header), output.map_err(JoinError::from_payload))
}

#[cold]
pub(super) fn end_badly(task: Task, output: Result<(), JoinError>) -> Option<ExitReason> {
    let output = if task.header().raised.get() {
        apply_exit_signal(task, output)
    } else {
        output
    };
    let how = output.as_ref().err().map(ExitReason::from);
    drop_quietly(output);
    how
}

/// # Safety
/// The contract of `VTable::cancel`.
unsafe fn cancel(header: NonNull<Header>, why: JoinError) {
    drop_quietly(why);
    // SAFETY: the caller's contract. The task is empty if it was abandoned during its turn.
    let object = unsafe { take_object(header) };
    let is_refused = worker::current().is_some_and(Worker::is_refusing);
    let ended = catch_unwind(AssertUnwindSafe(|| match object {
        Some(object) if is_refused => object.refuse(),
        // The runtime is stopping, and there are no more turns.
        other => drop(other),
    }));
    drop_quietly(ended);
}

/// Rule 1.
///
/// # Safety
/// The contract of `VTable::free`.
unsafe fn free(header: NonNull<Header>) {
    #[cfg(not(loom))]
    let has_control = Task(header).drop_parts();
    #[cfg(loom)]
    let has_control = false;
    let cell = header.cast::<TurnCell>().as_ptr();
    // SAFETY: the caller dropped the last reference. The old header has nothing to drop: a turn has
    // no name.
    unsafe {
        #[cfg(loom)]
        (*cell).header.memory.free();
        let (id, on_worker_stack) = ((*cell).header.id, (*cell).header.on_worker_stack);
        ptr::write(&raw mut (*cell).header, new_header(id, on_worker_stack));
        if has_control || !(*cell).slot.put(cell) {
            drop(Box::from_raw(cell));
        }
    }
}
