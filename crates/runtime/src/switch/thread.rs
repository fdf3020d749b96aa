//! A coroutine that is a thread of its own.
//!
//! 1. One baton goes from the one who resumes to the thread and back, under a lock: who does not have it waits for it. So exactly one of
//!    the two runs, and each sees what the other did before.
//! 2. With the baton comes what the resumer's thread knows of itself ([`Belongings`]): the coroutine would find it on a stack of its own, too.
//! 3. The thread starts with the first resume and is joined when its closure has ended. Both come before `into_stack`, and the
//!    closure has ended before a coroutine that was started is dropped.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::worker::Belongings;

/// As corosensei's.
pub(crate) enum CoroutineResult<Y, R> {
    Yield(Y),
    Return(R),
}

/// As corosensei's.
pub(crate) struct Coroutine<I, Y, R, S> {
    baton: Arc<Baton<I, Y>>,
    thread: Thread<I, Y, R>,
    stack: S,
}

enum Thread<I, Y, R> {
    Fresh(Body<I, Y, R>),
    Started(JoinHandle<Sent<R>>),
    Ended,
}

type Body<I, Y, R> = Box<dyn FnOnce(&Yielder<I, Y>, I) -> R>;

/// As corosensei's.
pub(crate) struct Yielder<I, Y> {
    baton: Arc<Baton<I, Y>>,
}

struct Baton<I, Y> {
    at: Mutex<At<I, Y>>,
    passed: Condvar,
}

enum At<I, Y> {
    Resumer(Option<Y>),
    Inside(Option<(I, Belongings)>),
    Ended,
}

/// What goes to another thread although its type says nothing of that.
struct Sent<T>(T);

// SAFETY: rule 1: one of the two threads at a time touches it, and the lock is between them.
unsafe impl<T> Send for Sent<T> {}

impl<T> Sent<T> {
    /// A closure that names the field would take that alone with it.
    fn open(self) -> T {
        self.0
    }
}

impl<I, Y> Baton<I, Y> {
    /// Passes it on, and waits until `take` gets what it wants from it.
    fn pass<T>(&self, to: At<I, Y>, take: impl Fn(&mut At<I, Y>) -> Option<T>) -> T {
        *self.lock() = to;
        self.passed.notify_all();
        self.wait(take)
    }

    fn wait<T>(&self, take: impl Fn(&mut At<I, Y>) -> Option<T>) -> T {
        let mut at = self.lock();
        loop {
            if let Some(taken) = take(&mut at) {
                return taken;
            }
            at = self.passed.wait(at).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The coroutine: goes on.
    fn enter(taken: (I, Belongings)) -> I {
        taken.1.take_up();
        taken.0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, At<I, Y>> {
        // Nothing panics while it is held.
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn inside<I, Y>(at: &mut At<I, Y>) -> Option<(I, Belongings)> {
    match at {
        At::Inside(input) => input.take(),
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
                at: Mutex::new(At::Resumer(None)),
                passed: Condvar::new(),
            }),
            thread: Thread::Fresh(Box::new(body)),
            stack,
        }
    }

    pub(crate) fn started(&self) -> bool {
        !matches!(self.thread, Thread::Fresh(_))
    }

    /// As corosensei's, but that a coroutine which has not begun may simply be dropped.
    ///
    /// # Safety
    /// None of its frames is needed any more.
    pub(crate) unsafe fn force_reset(&mut self) {
        self.thread = Thread::Ended;
    }

    pub(crate) fn resume(&mut self, input: I) -> CoroutineResult<Y, R> {
        if let Thread::Fresh(_) = self.thread {
            self.start();
        }
        let passed = At::Inside(Some((input, Belongings::of_this_thread())));
        let yielded = self.baton.pass(passed, |at| match at {
            At::Resumer(yielded) => yielded.take().map(Some),
            At::Ended => Some(None),
            At::Inside(_) => None,
        });
        match yielded {
            Some(value) => CoroutineResult::Yield(value),
            None => CoroutineResult::Return(self.join()),
        }
    }

    fn start(&mut self) {
        let Thread::Fresh(body) = std::mem::replace(&mut self.thread, Thread::Ended) else {
            unreachable!("it is started once");
        };
        let sent = Sent((body, Arc::clone(&self.baton)));
        let thread = crate::runtime::worker_thread("tw-fiber".into(), move || {
            let (body, baton) = sent.open();
            // However it ends, the resumer must not wait for ever.
            struct Ends<I, Y>(Arc<Baton<I, Y>>);
            impl<I, Y> Drop for Ends<I, Y> {
                fn drop(&mut self) {
                    *self.0.lock() = At::Ended;
                    self.0.passed.notify_all();
                }
            }
            let ends = Ends(Arc::clone(&baton));
            let first = Baton::<I, Y>::enter(baton.wait(inside));
            let result = body(&Yielder { baton }, first);
            drop(ends);
            Sent(result)
        });
        self.thread = Thread::Started(thread.expect("the system has a thread for each fiber"));
    }

    fn join(&mut self) -> R {
        let Thread::Started(thread) = std::mem::replace(&mut self.thread, Thread::Ended) else {
            unreachable!("it has been started, and ends once");
        };
        match thread.join() {
            Ok(result) => result.open(),
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
        let back = At::Resumer(Some(value));
        Baton::<I, Y>::enter(self.baton.pass(back, inside))
    }
    /// Here: this thread has a stack of its own that is as large.
    pub(crate) fn on_parent_stack<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }
}
