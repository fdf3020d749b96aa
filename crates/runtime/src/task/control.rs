//! The task as other threads reach it: its control, the behaviour actor whose turn it runs, and its
//! interruption by signals.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::task::Waker;

use thalweg_queue::{NoPreemptGuard, barrier};

use super::Task;
use crate::control::{Control, Down, KillFlag, OnDown, SignalTarget, Target};
use crate::id::ActorId;
use crate::reason::ExitReason;
use crate::scope_node::TokenNode;
use crate::shim::{Ordering, fence};
use crate::trace_context::TraceContext;

/// A behaviour actor during its turn. It is in the turn's frame and points to objects that the turn
/// keeps alive.
pub(crate) struct RunningTurn {
    pub(crate) id: ActorId,
    /// From an `Arc`.
    pub(crate) body: *const dyn SignalTarget,
    pub(crate) kill_flag: *const KillFlag,
}

impl RunningTurn {
    pub(crate) fn kill_flag(&self) -> &KillFlag {
        // SAFETY: the turn keeps its actor alive.
        unsafe { &*self.kill_flag }
    }

    /// Called when the turn never continues.
    pub(super) fn abandoned(&self) {
        self.reached().abandoned();
    }

    fn reached(&self) -> Arc<dyn SignalTarget> {
        // SAFETY: the turn keeps it alive.
        unsafe {
            Arc::increment_strong_count(self.body);
            Arc::from_raw(self.body)
        }
    }

    /// Marks the calling task as this turn while `f` runs. `f` catches its own panics.
    pub(crate) fn during<R>(&self, task: Option<Task>, f: impl FnOnce() -> R) -> R {
        if let Some(task) = task {
            task.header().actor.set(self);
            task.note_context();
        }
        let result = f();
        if let Some(task) = task {
            task.header().actor.set(std::ptr::null());
            task.note_context();
        }
        result
    }
}

impl Task {
    /// Makes `watcher` the watcher of a new task, which is in no queue yet.
    pub(crate) fn watch(self, watcher: Arc<dyn OnDown>) {
        let header = self.header();
        header.state.set_watched();
        header.watcher.set(MaybeUninit::new(watcher));
    }

    /// The task ends, which it does once. It has a watcher.
    pub(super) fn notify_watcher(self, how: Option<&ExitReason>) {
        let header = self.header();
        let watcher = header.watcher.replace(MaybeUninit::uninit());
        // SAFETY: `WATCHED` is set, and this takes the watcher once.
        let watcher = unsafe { watcher.assume_init() };
        let _no_preempt = NoPreemptGuard::enter();
        watcher.on_down(Down {
            id: header.id,
            reason: how.cloned().unwrap_or(ExitReason::Normal),
        });
    }

    #[cold]
    pub(super) fn notify_control(self, how: Option<&ExitReason>) {
        let control = self.header().control.load(Ordering::Acquire);
        // SAFETY: rule 4. `HAS_CONTROL` was set after the control was created, and the control is
        // released with the task.
        let control = unsafe { &*control };
        control.end(how.cloned().unwrap_or(ExitReason::Normal));
    }

    /// Returns the control, with a reference. Creates it at the first call.
    pub(crate) fn control(self) -> Arc<Control> {
        let header = self.header();
        let mut known = header.control.load(Ordering::Acquire);
        if known.is_null() {
            let made = Control::new(header.id, Target::Job(self));
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
                    // SAFETY: it was just created, and no other thread has seen it.
                    drop(unsafe { Arc::from_raw(made) });
                    others
                }
            };
        }
        // SAFETY: rule 4, and the caller's reference keeps the task alive. The caller gets a
        // reference of its own.
        let control = unsafe {
            Arc::increment_strong_count(known);
            Arc::from_raw(known)
        };
        // A thread that did not create the control may get here before its creator.
        if !header.state.has_control() && !header.state.set_has_control() {
            control.end(ExitReason::NoActor);
        }
        control
    }

    /// Returns the control of the running actor, which may be a behaviour actor during its turn.
    pub(crate) fn actor_control(self) -> Arc<Control> {
        match self.running_turn() {
            None => self.control(),
            Some(turn) => turn.reached().control(),
        }
    }

    /// Returns the behaviour actor whose turn this is. The caller is the running task.
    #[inline(always)]
    pub(crate) fn running_turn(&self) -> Option<&RunningTurn> {
        // SAFETY: `during` clears the pointer before the frame that contains the object is left.
        unsafe { self.header().actor.get().as_ref() }
    }

    /// Replaces the trace context and returns the previous one. The caller is the running task, or
    /// owns the task while it does not run.
    pub(crate) fn replace_trace(
        self,
        trace: Option<Arc<TraceContext>>,
    ) -> Option<Arc<TraceContext>> {
        let trace = trace.map_or(std::ptr::null(), Arc::into_raw);
        let before = self.header().trace.replace(trace);
        // SAFETY: the pointer came from `into_raw` above, and this field owned it.
        (!before.is_null()).then(|| unsafe { Arc::from_raw(before) })
    }

    /// Returns the ID of the running actor.
    pub(crate) fn actor_id(self) -> ActorId {
        self.running_turn().map_or(self.header().id, |turn| turn.id)
    }

    /// Sets the kill flag. Called by the control. Returns a waker that interrupts the task, or
    /// `None` if the task has not started and will not start.
    pub(crate) fn set_kill_flag(self) -> Option<Waker> {
        let header = self.header();
        header.kill_flag.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        if header.remote_queue.load(Ordering::Relaxed).is_null() {
            // The worker that starts the task writes its remote queue before it checks the flag
            // (`bind`).
            barrier::heavy_or_full();
            if header.remote_queue.load(Ordering::Relaxed).is_null() {
                return None;
            }
        }
        Some(self.waker())
    }

    /// Whether an exit signal must unwind the running task now. `false` while a `NoKill` guard
    /// exists.
    #[inline(always)]
    pub(crate) fn must_unwind(self) -> bool {
        let header = self.header();
        let doomed = header.kill_flag.load(Ordering::Acquire)
            || self
                .running_turn()
                .is_some_and(|turn| turn.kill_flag().is_set());
        doomed && header.masks.get() == 0
    }

    /// Like [`must_unwind`](Self::must_unwind), but also `true` if the scope is cancelled.
    #[inline(always)]
    pub(crate) fn is_interrupted(self) -> bool {
        self.may_be_interrupted()
            && (self.must_unwind()
                || (self.scope().is_some_and(TokenNode::is_cancelled)
                    && self.header().masks.get() == 0))
    }

    /// Whether [`is_interrupted`](Self::is_interrupted) can be `true`, or the runtime is stopping.
    /// The caller is the running task.
    #[inline(always)]
    pub(crate) fn may_be_interrupted(self) -> bool {
        let header = self.header();
        header.kill_flag.load(Ordering::Acquire) || header.has_context.get()
    }

    /// Sets the innermost scope, and returns the previous one. The caller is the running task.
    pub(crate) fn replace_scope(self, scope: *const TokenNode) -> *const TokenNode {
        let before = self.header().scope.replace(scope);
        self.note_context();
        before
    }

    fn note_context(self) {
        let header = self.header();
        let has_context = !header.scope.get().is_null() || !header.actor.get().is_null();
        header.has_context.set(has_context);
    }

    /// Returns the innermost scope. The caller is the running task.
    #[inline(always)]
    pub(crate) fn scope(&self) -> Option<&TokenNode> {
        // SAFETY: the code that sets the pointer clears it before the frame that contains the node
        // is left.
        unsafe { self.header().scope.get().as_ref() }
    }

    /// Returns the reason of the exit signal.
    pub(crate) fn exit_reason(self) -> ExitReason {
        let reason = self.actor_control().exit_reason();
        reason.unwrap_or(ExitReason::Killed)
    }
}
