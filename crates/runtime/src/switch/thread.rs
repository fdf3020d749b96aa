//! A coroutine that is implemented as a thread.
//!
//! 1. A baton passes between the resuming thread and the coroutine's thread, under a lock. The
//!    thread that does not have the baton waits for it. Therefore exactly one of the two runs, and
//!    each sees what the other did before.
//! 2. The resuming thread passes its thread-local state with the baton ([`ThreadContext`]), because
//!    a coroutine on a separate stack would share it.
//! 3. The thread starts at the first resume, and is joined when its closure has ended. Both happen
//!    before `into_stack`. A coroutine that was started is dropped only after its closure has
//!    ended.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::worker::ThreadContext;

/// As in corosensei.
pub(crate) enum CoroutineResult<Y, R> {
    Yield(Y),
    Return(R),
}

/// As in corosensei.
pub(crate) struct Coroutine<I, Y, R, S> {
    baton: Arc<Baton<I, Y>>,
    thread: Thread<I, Y, R>,
    stack: S,
}

enum Thread<I, Y, R> {
    Unstarted(Body<I, Y, R>),
    Started(JoinHandle<AssertSend<R>>),
    Ended,
}

type Body<I, Y, R> = Box<dyn FnOnce(&Yielder<I, Y>, I) -> R>;

/// As in corosensei.
pub(crate) struct Yielder<I, Y> {
    baton: Arc<Baton<I, Y>>,
}

struct Baton<I, Y> {
    at: Mutex<Holder<I, Y>>,
    passed: Condvar,
}

enum Holder<I, Y> {
    Resumer(Option<Y>),
    Inside(Option<(I, ThreadContext)>),
    Ended,
}

/// A value that is sent to another thread although its type may not be `Send`.
struct AssertSend<T>(T);

// SAFETY: rule 1. Only one of the two threads accesses it at a time, and the lock orders their
// accesses.
unsafe impl<T> Send for AssertSend<T> {}

impl<T> AssertSend<T> {
    /// A method, because a closure that names the field would capture only the field.
    fn into_inner(self) -> T {
        self.0
    }
}

impl<I, Y> Baton<I, Y> {
    /// Passes the baton, and waits until `take` returns a value.
    fn pass<T>(&self, to: Holder<I, Y>, take: impl Fn(&mut Holder<I, Y>) -> Option<T>) -> T {
        *self.lock() = to;
        self.passed.notify_all();
        self.wait(take)
    }

    fn wait<T>(&self, take: impl Fn(&mut Holder<I, Y>) -> Option<T>) -> T {
        let mut at = self.lock();
        loop {
            if let Some(taken) = take(&mut at) {
                return taken;
            }
            at = self.passed.wait(at).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Continues the coroutine.
    fn enter(taken: (I, ThreadContext)) -> I {
        taken.1.install();
        taken.0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Holder<I, Y>> {
        // No code panics while the lock is held.
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn inside<I, Y>(at: &mut Holder<I, Y>) -> Option<(I, ThreadContext)> {
    match at {
        Holder::Inside(input) => input.take(),
        _ => None,
    }
}

impl<I: 'static, Y: 'static, R: 'static, S> Coroutine<I, Y, R, S> {
    pub(crate) fn with_stack(
        stack: S,
        body: impl FnOnce(&Yielder<I, Y>, I) -> R + 'static,
    ) -> Self {
        Self {
            baton: Arc::new(Baton {
                at: Mutex::new(Holder::Resumer(None)),
                passed: Condvar::new(),
            }),
            thread: Thread::Unstarted(Box::new(body)),
            stack,
        }
    }

    pub(crate) fn started(&self) -> bool {
        !matches!(self.thread, Thread::Unstarted(_))
    }

    /// As in corosensei, except that an unstarted coroutine may be dropped without this call.
    ///
    /// # Safety
    /// None of the coroutine's frames is needed any more.
    pub(crate) unsafe fn force_reset(&mut self) {
        self.thread = Thread::Ended;
    }

    pub(crate) fn resume(&mut self, input: I) -> CoroutineResult<Y, R> {
        if let Thread::Unstarted(_) = self.thread {
            self.start();
        }
        let passed = Holder::Inside(Some((input, ThreadContext::capture())));
        let yielded = self.baton.pass(passed, |at| match at {
            Holder::Resumer(yielded) => yielded.take().map(Some),
            Holder::Ended => Some(None),
            Holder::Inside(_) => None,
        });
        match yielded {
            Some(value) => CoroutineResult::Yield(value),
            None => CoroutineResult::Return(self.join()),
        }
    }

    fn start(&mut self) {
        let Thread::Unstarted(body) = std::mem::replace(&mut self.thread, Thread::Ended) else {
            unreachable!("a coroutine is started once");
        };
        let sent = AssertSend((body, Arc::clone(&self.baton)));
        let thread = crate::threads::spawn_worker("tw-fiber".into(), move || {
            let (body, baton) = sent.into_inner();
            // The resuming thread must not wait forever, even if the closure panics.
            struct EndOnDrop<I, Y>(Arc<Baton<I, Y>>);
            impl<I, Y> Drop for EndOnDrop<I, Y> {
                fn drop(&mut self) {
                    *self.0.lock() = Holder::Ended;
                    self.0.passed.notify_all();
                }
            }
            let ends = EndOnDrop(Arc::clone(&baton));
            let first = Baton::<I, Y>::enter(baton.wait(inside));
            let result = body(&Yielder { baton }, first);
            drop(ends);
            AssertSend(result)
        });
        self.thread = Thread::Started(thread.expect("the system has a thread for each fiber"));
    }

    fn join(&mut self) -> R {
        let Thread::Started(thread) = std::mem::replace(&mut self.thread, Thread::Ended) else {
            unreachable!("a started coroutine ends once");
        };
        match thread.join() {
            Ok(result) => result.into_inner(),
            Err(payload) => std::panic::resume_unwind(payload),
        }
    }

    pub(crate) fn into_stack(self) -> S {
        assert!(matches!(self.thread, Thread::Ended), "rule 3");
        self.stack
    }
}

impl<I, Y> Yielder<I, Y> {
    pub(crate) fn suspend(&self, value: Y) -> I {
        let back = Holder::Resumer(Some(value));
        Baton::<I, Y>::enter(self.baton.pass(back, inside))
    }
    /// This thread has a stack of its own that is equally large, so `f` runs on it.
    pub(crate) fn on_parent_stack<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }
}
