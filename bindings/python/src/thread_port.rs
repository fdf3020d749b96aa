//! Sync calls: each thread has one port per library, made at its first call and closed when it ends.
//!
//! A wait runs Python's signal handlers, and a handler may call on the same thread. So a port has any number of
//! waiting calls, nested like the frames that wait, and a wait that reaps another's completion keeps it for the other.
//!
//! A notice is told by its own call's wait, between two waits of the core, and before the end where both are there: so a
//! function that is told never runs inside of itself. Of those that come while it runs, or while a wait inside of it does,
//! the last is kept.

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

/// Calls of one thread that may be unreaped at once: the waiting ones, and cancelled ones until they are reaped.
const CAPACITY: u32 = 64;

/// How many completions one reap takes.
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
    waiting: RefCell<Vec<Waiting>>,
    kept: RefCell<Vec<Completion>>,
}

/// Something that waits.
struct Waiting {
    token: u64,
    /// What is told that its call still runs.
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

    /// A token that nothing had before, for something to wait for; [`Self::forget`] ends it.
    pub fn token(&self) -> u64 {
        self.token_of(None)
    }

    fn token_of(&self, on_notice: Option<Py<PyAny>>) -> u64 {
        let token = self.last_token.get() + 1;
        self.last_token.set(token);
        let waiting = Waiting { token, on_notice };
        self.waiting.borrow_mut().push(waiting);
        token
    }

    /// Its number.
    pub fn number(&self) -> TwHandle {
        self.port
    }

    /// Submits one call and waits for its end with the GIL released; `sources` are sent meanwhile.
    ///
    /// # Errors
    /// What `submit` refuses with, and what a signal handler, a source or who is told of notices raised; then the call is
    /// cancelled.
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
            // SAFETY: a stale call is an error of the table, and its words are of no use here.
            unsafe { (self.library.table.cancel)(call, std::ptr::null_mut()) };
        }
        ended
    }

    /// Waits until `reader` has something, or until `deadline_ns`, with the GIL released; what a service asks meanwhile is
    /// answered.
    ///
    /// # Errors
    /// What a signal handler raised, or a host's function that raised no `Exception`; how the stream's handle is no good.
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

    /// What comes for `token` from now on is nobody's and released.
    pub fn forget(&self, token: u64) {
        let waiting = {
            let mut waiting = self.waiting.borrow_mut();
            let place = waiting.iter().position(|one| one.token == token);
            place.map(|place| waiting.swap_remove(place))
        };
        self.kept
            .borrow_mut()
            .retain(|completion| completion.token() != token);
        // The last reference to what was told of notices can run code that calls here.
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
            // A signal that came before the GIL is released would be seen only when the call has ended.
            py.check_signals()?;
            // A wait inside of this one, or one for several tokens, has reaped it.
            if let Some(completion) = self.arrived(py, tokens)? {
                return Ok(Some(completion));
            }
            let mut error = errors::blank();
            let (table, port) = (self.library.table, self.port);
            // SAFETY: the port is this thread's and open; `error` is ours.
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

    /// Reaps what is there: a completion of one of `tokens` comes back, another's that waits is kept, the rest were
    /// cancelled and are released.
    pub fn reap(&self, py: Python<'_>, tokens: &[u64]) -> PyResult<Option<Completion>> {
        loop {
            let mut reaped = [Completion::blank(); REAP];
            let (mut count, mut error) = (0, errors::blank());
            // SAFETY: room for REAP; the rest is ours.
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
                // Nothing to reap is said so, or as a status.
                return match code {
                    thalweg_capi::abi::TW_WOULD_PARK => self.arrived(py, tokens),
                    _ => Err(errors::from_table(py, code, &error)),
                };
            }
            let mut asked = Vec::new();
            for raw in &reaped[..count as usize] {
                let completion = Completion::new(self.library, *raw);
                if completion.is_host_call() {
                    asked.push(completion);
                } else {
                    self.keep(completion);
                }
            }
            // They run code that may wait on this port, too.
            for asked in asked {
                host::serve(py, self.library, &asked)?;
            }
            if (count as usize) < REAP {
                return self.arrived(py, tokens);
            }
        }
    }

    /// What was kept for one of `tokens`, once its call's notices were told.
    ///
    /// # Errors
    /// What was raised by who was told.
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

    /// Keeps what came for who waits for it, in the order in which it came; of a call's notices the last.
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
            // SAFETY: opened by `of`, closed only here; runs without the GIL when the thread ends.
            unsafe { (self.library.table.port_close)(self.port, std::ptr::null_mut()) };
        }
    }
}
