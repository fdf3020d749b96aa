//! A job as others know it: its control, the behaviour actor whose turn it is, and what interrupts it.

use std::sync::Arc;
use std::task::Waker;

use thalweg_queue::barrier;

use super::Task;
use crate::cancel::Node;
use crate::exit::{Control, Doom, ExitReason, Reach, Reached};
use crate::id::ActorId;
use crate::shim::{Ordering, fence};
use crate::trace::TraceContext;

/// A behaviour actor during its turn. It lies in the turn's frame, and names what the turn keeps.
pub(crate) struct Turning {
    pub(crate) id: ActorId,
    /// From an `Arc`.
    pub(crate) body: *const dyn Reached,
    pub(crate) doom: *const Doom,
}

impl Turning {
    pub(crate) fn doom(&self) -> &Doom {
        // SAFETY: the turn keeps its actor.
        unsafe { &*self.doom }
    }

    /// The turn never goes on.
    pub(super) fn abandoned(&self) {
        self.reached().abandoned();
    }

    fn reached(&self) -> Arc<dyn Reached> {
        // SAFETY: the turn keeps it.
        unsafe {
            Arc::increment_strong_count(self.body);
            Arc::from_raw(self.body)
        }
    }

    /// While `f` runs the job that calls this is the turn. `f` catches what it throws.
    pub(crate) fn during<R>(&self, task: Option<Task>, f: impl FnOnce() -> R) -> R {
        if let Some(task) = task {
            task.header().actor.set(self);
        }
        let result = f();
        if let Some(task) = task {
            task.header().actor.set(std::ptr::null());
        }
        result
    }
}

impl Task {
    #[cold]
    pub(super) fn tell_end(self, how: Option<&ExitReason>) {
        let control = self.header().control.load(Ordering::Acquire);
        // SAFETY: rule 4: who named it made its control before, and it goes with the job.
        let control = unsafe { &*control };
        control.end(how.cloned().unwrap_or(ExitReason::Normal));
    }

    /// What others know of it. With a reference.
    pub(crate) fn control(self) -> Arc<Control> {
        let header = self.header();
        let mut known = header.control.load(Ordering::Acquire);
        if known.is_null() {
            let made = Control::new(header.id, Reach::Job(self));
            let made = Arc::into_raw(made).cast_mut();
            let put = header.control.compare_exchange(
                std::ptr::null_mut(),
                made,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            known = match put {
                Ok(_) => made,
                Err(others) => {
                    // SAFETY: it was just made, and nobody else has seen it.
                    drop(unsafe { Arc::from_raw(made) });
                    others
                }
            };
        }
        // SAFETY: rule 4, and the caller's reference keeps the job. One for the caller is added.
        let control = unsafe {
            Arc::increment_strong_count(known);
            Arc::from_raw(known)
        };
        // Whoever did not make it may be quicker here than who did.
        if !header.life.is_named() && !header.life.name() {
            control.end(ExitReason::NoActor);
        }
        control
    }

    /// What others know of the actor that runs, which may be a behaviour actor that has its turn.
    pub(crate) fn actor_control(self) -> Arc<Control> {
        match self.turning() {
            None => self.control(),
            Some(turning) => turning.reached().control(),
        }
    }

    /// The behaviour actor whose turn this is. The caller is what runs.
    #[inline(always)]
    pub(crate) fn turning(&self) -> Option<&Turning> {
        // SAFETY: `during` takes it back before the frame goes in which it lies.
        unsafe { self.header().actor.get().as_ref() }
    }

    /// Puts another one there. What was before. The caller is what runs, or whoever has the job while it does not.
    pub(crate) fn replace_trace(
        self,
        trace: Option<Arc<TraceContext>>,
    ) -> Option<Arc<TraceContext>> {
        let trace = trace.map_or(std::ptr::null(), Arc::into_raw);
        let before = self.header().trace.replace(trace);
        // SAFETY: what is there came from `into_raw` above, and this was its place.
        (!before.is_null()).then(|| unsafe { Arc::from_raw(before) })
    }

    /// Which actor runs here.
    pub(crate) fn actor_id(self) -> ActorId {
        self.turning()
            .map_or(self.header().id, |turning| turning.id)
    }

    /// From its control: a signal is to end it. What wakes it for that. `None`: it has not begun, and will not.
    pub(crate) fn must_end(self) -> Option<Waker> {
        let header = self.header();
        header.doomed.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        if header.remote_queue.load(Ordering::Relaxed).is_null() {
            // Who starts it says so before it looks (`settle`).
            barrier::heavy_or_full();
            if header.remote_queue.load(Ordering::Relaxed).is_null() {
                return None;
            }
        }
        Some(self.waker())
    }

    /// Whether a signal ends what runs, and nothing keeps that off just now.
    #[inline(always)]
    pub(crate) fn must_exit(self) -> bool {
        let header = self.header();
        let doomed = header.doomed.load(Ordering::Acquire)
            || self
                .turning()
                .is_some_and(|turning| turning.doom().is_set());
        doomed && header.masks.get() == 0
    }

    /// The same, or its scope is cancelled.
    #[inline(always)]
    pub(crate) fn is_interrupted(self) -> bool {
        self.must_exit()
            || (self.scope().is_some_and(Node::is_cancelled) && self.header().masks.get() == 0)
    }

    /// The innermost scope in which it is. The caller is what runs.
    #[inline(always)]
    pub(crate) fn scope(&self) -> Option<&Node> {
        // SAFETY: whoever put it there takes it back before the frame goes that keeps it.
        unsafe { self.header().scope.get().as_ref() }
    }

    /// The signal's.
    pub(crate) fn exit_reason(self) -> ExitReason {
        let reason = self.actor_control().exit_reason();
        reason.unwrap_or(ExitReason::Killed)
    }
}
