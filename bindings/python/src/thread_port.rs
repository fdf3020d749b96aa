//! Sync calls. Each thread has one port per library, which is opened at its first call and closed
//! when the thread ends.
//!
//! A wait runs Python's signal handlers, and a handler may make a call on the same thread. A port
//! therefore has any number of waiting calls, nested like the waiting frames. A wait that reaps the
//! completion of another call keeps it for that call.
//!
//! The wait of a call delivers its notices, between two waits of the core, and before the
//! completion if both have arrived. A notice function therefore never runs recursively. If several
//! notices arrive while it runs, or during a wait inside it, only the last one is kept.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pyo3::prelude::*;
use thalweg_capi::abi::{TW_FOREVER, TW_INTERRUPTED, TW_OK, TW_TIMED_OUT, TwHandle};

use crate::completion::Completion;
use crate::library::Library;
use crate::reader::Reader;
use crate::submission::Submission;
use crate::upstream::Source;
use crate::{errors, fork, host, together, upstream};

/// The maximum number of outstanding calls of one thread: the waiting ones, and cancelled ones
/// until they are reaped.
const CAPACITY: u32 = 64;

/// The maximum number of completions of one reap.
const REAP: usize = 4;

thread_local! {
    static PORTS: RefCell<Vec<Rc<ThreadPort>>> = const { RefCell::new(Vec::new()) };
}

/// This thread's port of one library.
pub struct ThreadPort {
    library: &'static Library,
    epoch: u64,
    port: TwHandle,
    last_token: Cell<u64>,
    waiting: RefCell<Vec<Waiter>>,
    kept: RefCell<Vec<Completion>>,
}

/// A waiting call or stream.
struct Waiter {
    token: u64,
    /// Called when the call is still running.
    on_notice: Option<Py<PyAny>>,
}

impl ThreadPort {
    /// The calling thread's port of `library`.
    pub fn of(py: Python<'_>, library: &'static Library) -> PyResult<Rc<Self>> {
        let here = fork::epoch();
        let known = PORTS.with_borrow(|ports| {
            let mine = |port: &&Rc<Self>| std::ptr::eq(port.library, library) && port.epoch == here;
            ports.iter().find(mine).map(Rc::clone)
        });
        if let Some(port) = known {
            return Ok(port);
        }
        let (mut port, mut error) = (0, errors::blank());
        // SAFETY: both pointers are ours.
        let code = unsafe { (library.table.port_open)(CAPACITY, &raw mut port, &raw mut error) };
        if code != TW_OK {
            return Err(errors::from_table(py, code, &error));
        }
        let port = Rc::new(Self {
            library,
            epoch: here,
            port,
            last_token: Cell::new(0),
            waiting: RefCell::default(),
            kept: RefCell::default(),
        });
        PORTS.with_borrow_mut(|ports| {
            ports.retain(|port| port.epoch == here);
            ports.push(Rc::clone(&port));
        });
        Ok(port)
    }

    /// A new token for a waiting call or stream. [`Self::forget`] ends it.
    pub fn token(&self) -> u64 {
        self.token_of(None)
    }

    fn token_of(&self, on_notice: Option<Py<PyAny>>) -> u64 {
        let token = self.last_token.get() + 1;
        self.last_token.set(token);
        let waiting = Waiter { token, on_notice };
        self.waiting.borrow_mut().push(waiting);
        token
    }

    /// The port's handle.
    pub fn number(&self) -> TwHandle {
        self.port
    }

    /// Submits one call and waits for its outcome with the GIL released. Meanwhile, `sources` are
    /// sent.
    ///
    /// # Errors
    /// The errors of `submit`, and exceptions of a signal handler, a source or the notice function;
    /// the call is then cancelled.
    pub fn call(
        &self,
        py: Python<'_>,
        submission: &Submission<'_, '_>,
        sources: Vec<Source<'_>>,
    ) -> PyResult<Completion> {
        let token = self.token_of(submission.on_notice.cloned().map(Bound::unbind));
        let call = match submission.submit(py, self.library, self.port, token) {
            Ok(call) => call,
            Err(refused) => {
                self.forget(token);
                return Err(refused);
            }
        };
        let mut ended = upstream::send_all(py, self, token, sources).transpose();
        let ended = loop {
            match ended {
                Some(ended) => break ended,
                None => ended = self.wait(py, &[token], TW_FOREVER).transpose(),
            }
        };
        self.forget(token);
        if ended.is_err() {
            // SAFETY: the table reports a stale call as an error, and the text is not needed.
            unsafe { (self.library.table.cancel)(call, std::ptr::null_mut()) };
        }
        ended
    }

    /// Waits until `reader` has a record, or until `deadline_ns`, with the GIL released. Meanwhile,
    /// host imports are answered.
    ///
    /// # Errors
    /// An exception of a signal handler, or of a host function if it is not an `Exception`; an
    /// error of the stream's handle.
    pub fn wait_for_stream(
        &self,
        py: Python<'_>,
        reader: &Reader,
        deadline_ns: u64,
    ) -> PyResult<()> {
        let token = self.token();
        let ended = match reader.handle.arm(py, self.port, token) {
            Ok(true) => Ok(None),
            Ok(false) => self.wait(py, &[token], deadline_ns),
            Err(refused) => Err(refused),
        };
        self.forget(token);
        ended.map(drop)
    }

    /// Ends `token`: completions that arrive for it later are released.
    pub fn forget(&self, token: u64) {
        let waiting = {
            let mut waiting = self.waiting.borrow_mut();
            let place = waiting.iter().position(|one| one.token == token);
            place.map(|place| waiting.swap_remove(place))
        };
        self.kept
            .borrow_mut()
            .retain(|completion| completion.token() != token);
        // Dropping the last reference to the notice function can run code that makes a call here.
        drop(waiting);
    }

    /// The first completion of one of `tokens`; `None` at the deadline.
    pub fn wait(
        &self,
        py: Python<'_>,
        tokens: &[u64],
        deadline_ns: u64,
    ) -> PyResult<Option<Completion>> {
        together::hand_over(py)?;
        loop {
            // A signal that arrived before the GIL is released would otherwise be handled only when
            // the call has ended.
            py.check_signals()?;
            // A nested wait, or a wait for several tokens, may have reaped it.
            if let Some(completion) = self.arrived(py, tokens)? {
                return Ok(Some(completion));
            }
            let mut error = errors::blank();
            let (table, port) = (self.library.table, self.port);
            // SAFETY: the port belongs to this thread and is open; `error` is ours.
            let code =
                py.detach(|| unsafe { (table.port_wait)(port, deadline_ns, &raw mut error) });
            match code {
                TW_OK | TW_INTERRUPTED | TW_TIMED_OUT => {}
                _ => return Err(errors::from_table(py, code, &error)),
            }
            let completion = self.reap(py, tokens)?;
            if completion.is_some() || code == TW_TIMED_OUT {
                return Ok(completion);
            }
        }
    }

    /// Reaps the available completions. Returns one for `tokens`, keeps those of other waiting
    /// calls, and releases those of cancelled calls.
    pub fn reap(&self, py: Python<'_>, tokens: &[u64]) -> PyResult<Option<Completion>> {
        loop {
            let mut reaped = [Completion::blank(); REAP];
            let (mut count, mut error) = (0, errors::blank());
            // SAFETY: the array has REAP entries, and the other pointers are ours.
            let code = unsafe {
                (self.library.table.port_reap)(
                    self.port,
                    reaped.as_mut_ptr(),
                    REAP as u32,
                    &raw mut count,
                    &raw mut error,
                )
            };
            if code != TW_OK && count == 0 {
                // The table reports an empty queue as a count of 0 or as a code.
                return match code {
                    thalweg_capi::abi::TW_WOULD_PARK => self.arrived(py, tokens),
                    _ => Err(errors::from_table(py, code, &error)),
                };
            }
            let mut host_calls = Vec::new();
            for raw in &reaped[..count as usize] {
                let completion = Completion::new(self.library, *raw);
                if completion.is_host_call() {
                    host_calls.push(completion);
                } else {
                    self.keep(completion);
                }
            }
            // Host functions run code that may wait on this port, too.
            for host_call in host_calls {
                host::serve(py, self.library, &host_call)?;
            }
            if (count as usize) < REAP {
                return self.arrived(py, tokens);
            }
        }
    }

    /// The completion that was kept for one of `tokens`, after the notices of its call were
    /// delivered.
    ///
    /// # Errors
    /// An exception of the notice function.
    fn arrived(&self, py: Python<'_>, tokens: &[u64]) -> PyResult<Option<Completion>> {
        while let Some(completion) = self.kept(tokens) {
            let Some(seconds) = completion.notice() else {
                return Ok(Some(completion));
            };
            let told = {
                let waiting = self.waiting.borrow();
                let mine = waiting.iter().find(|one| one.token == completion.token());
                mine.and_then(|one| one.on_notice.as_ref())
                    .map(|told| told.clone_ref(py))
            };
            drop(completion);
            if let Some(told) = told {
                told.call1(py, (seconds,))?;
            }
        }
        Ok(None)
    }

    /// Keeps a completion for the waiting call, in order of arrival; of a call's notices, only the
    /// last one.
    fn keep(&self, completion: Completion) {
        let token = completion.token();
        if !self.waiting.borrow().iter().any(|one| one.token == token) {
            return;
        }
        let mut kept = self.kept.borrow_mut();
        let mut notices = kept
            .iter_mut()
            .filter(|other| other.token() == token && other.notice().is_some());
        match notices.next().filter(|_| completion.notice().is_some()) {
            Some(place) => *place = completion,
            None => kept.push(completion),
        }
    }

    fn kept(&self, tokens: &[u64]) -> Option<Completion> {
        let mut kept = self.kept.borrow_mut();
        let place = kept
            .iter()
            .position(|completion| tokens.contains(&completion.token()))?;
        Some(kept.remove(place))
    }
}

impl Drop for ThreadPort {
    fn drop(&mut self) {
        self.kept.borrow_mut().clear();
        if self.epoch == fork::epoch() {
            // SAFETY: `of` opened it, and it is closed only here. This runs without the GIL when
            // the thread ends.
            unsafe { (self.library.table.port_close)(self.port, std::ptr::null_mut()) };
        }
    }
}
