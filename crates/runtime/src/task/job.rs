//! A task without a handle: its closure has no output. The turns of behaviour actors are such
//! tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use super::turn::end_badly;
use super::{Header, OnShortage, Task, TaskState, TurnOwner, VTable, blocks, drop_quietly};
use crate::id::ActorId;
use crate::reason::{ExitReason, JoinError};
use crate::sections;
use crate::shim::UnsafeCell;

#[repr(C)]
struct JobCell<F> {
    header: Header,
    /// `None` once the task has started or was cancelled. Belongs to the owner of the stage
    /// (`task`'s rule 3).
    job: UnsafeCell<Option<F>>,
}

impl<F: FnOnce()> JobCell<F> {
    const VTABLE: VTable = VTable {
        run: Self::run,
        cancel: Self::cancel,
        take: |_, _| unreachable!("a job has no output"),
        discard: |_| {},
        free: Self::free,
    };

    /// # Safety
    /// `task`'s rule 3: the stage belongs to the caller.
    unsafe fn take_job(header: NonNull<Header>) -> Option<F> {
        // SAFETY: `task`'s rule 1, and the vtable belongs to this type.
        let job = &unsafe { header.cast::<Self>().as_ref() }.job;
        // SAFETY: the caller's contract.
        job.with_mut(|job| unsafe { (*job).take() })
    }

    /// # Safety
    /// The contract of `VTable::run`.
    unsafe fn run(header: NonNull<Header>) -> Option<ExitReason> {
        // SAFETY: the caller's contract.
        let Some(job) = (unsafe { Self::take_job(header) }) else {
            unreachable!("a task is started once");
        };
        let output = sections::user_code(|| catch_unwind(AssertUnwindSafe(job)));
        // SAFETY: `task`'s rule 1.
        let raised = unsafe { header.as_ref() }.raised.get();
        if output.is_ok() && !raised {
            return None;
        }
        end_badly(Task(header), output.map_err(JoinError::from_payload))
    }

    /// # Safety
    /// The contract of `VTable::cancel`.
    unsafe fn cancel(header: NonNull<Header>, why: JoinError) {
        drop_quietly(why);
        // SAFETY: the caller's contract. There is none if the task was abandoned while it ran.
        drop_quietly(unsafe { Self::take_job(header) });
    }

    /// # Safety
    /// The contract of `VTable::free`. The job was taken.
    unsafe fn free(header: NonNull<Header>) {
        // SAFETY: the caller's contract.
        unsafe { Task(header).free_cell(header.cast::<Self>()) };
    }
}

impl Task {
    /// Creates a task without a handle. It is a turn of `owner`, if there is one.
    #[inline(always)]
    pub(crate) fn detached<F: FnOnce()>(
        id: ActorId,
        on_shortage: OnShortage,
        owner: Option<TurnOwner<'_>>,
        f: F,
    ) -> Self {
        let name = owner.and_then(|owner| owner.name.cloned());
        let state = TaskState::detached();
        let cell = blocks::allocate::<JobCell<F>>();
        let place = cell.as_ptr();
        let header = Header::new(&JobCell::<F>::VTABLE, state, Some(on_shortage), id, name);
        // SAFETY: the block is valid for writing.
        unsafe {
            (&raw mut (*place).header).write(header);
            (&raw mut (*place).job).write(UnsafeCell::new(Some(f)));
        }
        let task = Self(cell.cast());
        if let Some(owner) = owner {
            task.header().reported_id.set(owner.id);
        }
        task
    }
}
