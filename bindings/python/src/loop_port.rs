//! asyncio: one port per running loop and library, watched by the loop itself.
//!
//! 1. The loop watches the port's eventfd (`add_reader`). Its callback is the bound method
//!    [`LoopReader::turn`]. There is no helper thread.
//! 2. The port is armed when it is created. A turn ends with the port armed or the fd readable, so
//!    each completion causes a turn. A turn takes at most [`BUDGET`] completions, so that a flood
//!    does not starve other tasks.
//! 3. Each waiting task has a slot. The slot's number and generation are the token that the core
//!    carries. A slot that is given up gets a new generation, so a late completion matches no slot
//!    and is released.
//! 4. The latest notice is kept beside the completion. The waiting task delivers the notice first.
//! 5. Only the loop has a reference to the reader. When the loop closes, it drops its callbacks,
//!    and dropping the last reference to the reader closes the port: its calls end, and no more
//!    callbacks run. A loop that is dropped without being closed is garbage-collected with its
//!    reader: the reader shows the garbage collector the futures that it holds.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use thalweg_capi::abi::{TW_OK, TW_WOULD_PARK, TwHandle};

use crate::completion::Completion;
use crate::library::Library;
use crate::submission::{self, PreparedCall, Submission};
use crate::{errors, fork, host, together};

/// The maximum number of outstanding calls of one loop. The core allocates about 100 bytes for each
/// when the port is opened, so the table's maximum, 65,536, would cost each loop 6 MB. A call
/// beyond this limit is `Overloaded`.
const CAPACITY: u32 = 16_384;

/// The maximum number of completions of one turn.
const BUDGET: usize = 256;

/// The maximum number of completions of one reap.
const REAP: usize = 16;

/// A port that a loop watches.
pub struct LoopPort {
    /// The library that the port belongs to.
    pub library: &'static Library,
    /// The port's handle.
    pub port: TwHandle,
    epoch: u64,
    /// The loop's address. It identifies the loop while the port is open, because the loop holds
    /// the reader.
    loop_at: usize,
    closed: AtomicBool,
    /// Locked with the GIL held, and never while Python code runs.
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    all: Vec<Slot>,
    free: Vec<u32>,
    /// Calls to be submitted together.
    kept: Vec<PreparedCall>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    notice: Option<f64>,
    arrived: Option<Completion>,
    future: Option<Py<PyAny>>,
    /// 0 before the call is submitted.
    call: TwHandle,
    refused: Option<PyErr>,
}

/// The ports of this process's loops.
static PORTS: Mutex<Vec<Weak<LoopPort>>> = Mutex::new(Vec::new());

/// The loop that runs on this thread.
///
/// # Errors
/// `RuntimeError` if no loop is running.
pub fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static GET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    GET.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("asyncio")?.getattr("get_running_loop")?.unbind())
    })?
    .bind(py)
    .call0()
}

impl LoopPort {
    /// The running loop, and its port of `library`.
    ///
    /// # Errors
    /// `RuntimeError` if no loop is running.
    pub fn of_running_loop<'py>(
        py: Python<'py>,
        library: &'static Library,
    ) -> PyResult<(Bound<'py, PyAny>, Arc<Self>)> {
        let event_loop = running_loop(py)?;
        let loop_at = event_loop.as_ptr() as usize;
        let known = ports().iter().filter_map(Weak::upgrade).find(|port| {
            port.loop_at == loop_at && std::ptr::eq(port.library, library) && port.is_open()
        });
        let port = match known {
            Some(port) => port,
            None => Self::open(&event_loop, library)?,
        };
        Ok((event_loop, port))
    }

    fn open(event_loop: &Bound<'_, PyAny>, library: &'static Library) -> PyResult<Arc<Self>> {
        let py = event_loop.py();
        let (mut port, mut error) = (0, errors::blank());
        // SAFETY: both pointers are ours.
        let code = unsafe { (library.table.port_open)(CAPACITY, &raw mut port, &raw mut error) };
        if code != TW_OK {
            return Err(errors::from_table(py, code, &error));
        }
        let this = Arc::new(Self {
            library,
            port,
            epoch: fork::epoch(),
            loop_at: event_loop.as_ptr() as usize,
            closed: AtomicBool::new(false),
            slots: Mutex::default(),
        });
        // From here on, dropping the reader closes the port.
        let reader = Bound::new(
            py,
            LoopReader {
                port: Arc::clone(&this),
            },
        )?;
        let mut fd: RawFd = -1;
        // SAFETY: as above.
        let code = unsafe { (library.table.port_fd)(port, &raw mut fd, &raw mut error) };
        if code != TW_OK {
            return Err(errors::from_table(py, code, &error));
        }
        let turn = reader.getattr(intern!(py, "turn"))?;
        event_loop.call_method1(intern!(py, "add_reader"), (fd, &turn))?;
        if this.arm(py)? {
            event_loop.call_method1(intern!(py, "call_soon"), (turn,))?;
        }
        let mut ports = ports();
        ports.retain(|port| port.strong_count() > 0);
        ports.push(Arc::downgrade(&this));
        Ok(this)
    }

    /// Whether the port is open: its loop was not closed, and this process is not a fork.
    pub fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Relaxed) && self.epoch == fork::epoch()
    }

    /// A token for a new waiting task.
    pub fn reserve(&self) -> u64 {
        let mut slots = self.slots();
        let place = slots.free.pop().unwrap_or_else(|| {
            slots.all.push(Slot::default());
            // There are as many slots as outstanding calls and waiting streams: far fewer than
            // 2^32.
            u32::try_from(slots.all.len() - 1).expect("fewer than 2^32 waiting at once")
        });
        token(place, slots.all[place as usize].generation)
    }

    /// Gives up `token`. A completion that arrives for it later is released.
    pub fn give_up(&self, token: u64) {
        let place = place(token);
        let dropped = {
            let mut slots = self.slots();
            let slot = &mut slots.all[place];
            slot.notice = None;
            slot.call = 0;
            let dropped = (slot.arrived.take(), slot.future.take(), slot.refused.take());
            slot.generation = slot.generation.wrapping_add(1);
            #[expect(clippy::cast_possible_truncation, reason = "the token's low half")]
            slots.free.push(place as u32);
            dropped
        };
        drop(dropped);
    }

    /// Submits the call of `token`, or keeps it to be submitted with other calls of the same loop
    /// iteration. A call that `gives` a handle away is submitted at once.
    ///
    /// # Errors
    /// As for [`Submission::submit`].
    pub fn submit(
        &self,
        event_loop: &Bound<'_, PyAny>,
        submission: &Submission<'_, '_>,
        token: u64,
        gives: bool,
    ) -> PyResult<()> {
        let py = event_loop.py();
        if together::is_open(self.loop_at) {
            if !gives {
                let kept = submission.keep(token)?;
                let mut slots = self.slots();
                slots.kept.push(kept);
                let is_first = slots.kept.len() == 1;
                drop(slots);
                return match is_first {
                    true => together::hand_over_soon(event_loop),
                    false => Ok(()),
                };
            }
            self.hand_over(py)?;
        }
        let call = submission.submit(py, self.library, self.port, token)?;
        self.slots().all[place(token)].call = call;
        Ok(())
    }

    /// Submits the kept calls.
    ///
    /// # Errors
    /// An exception of the loop while it is notified of a refused call.
    fn hand_over(&self, py: Python<'_>) -> PyResult<()> {
        let kept = std::mem::take(&mut self.slots().kept);
        if kept.is_empty() || !self.is_open() {
            return Ok(());
        }
        let submitted = submission::submit_all(py, self.library, self.port, &kept);
        let mut notified = Vec::new();
        {
            let mut slots = self.slots();
            for (kept, submitted) in kept.iter().zip(submitted) {
                let slot = &mut slots.all[place(kept.token)];
                match submitted {
                    Ok(call) => slot.call = call,
                    Err(refused) => {
                        slot.refused = Some(refused);
                        notified.extend(slot.future.take());
                    }
                }
            }
        }
        for future in notified {
            // A future that was cancelled meanwhile refuses the result.
            let _refused = future
                .bind(py)
                .call_method1(intern!(py, "set_result"), (py.None(),));
        }
        Ok(())
    }

    /// The handle of the call of `token`. `None` if it was not submitted; it is then not kept any
    /// longer.
    pub fn call_of(&self, token: u64) -> Option<TwHandle> {
        let mut slots = self.slots();
        let call = slots.all[place(token)].call;
        if call == 0 {
            slots.kept.retain(|kept| kept.token != token);
        }
        Some(call).filter(|call| *call != 0)
    }

    /// Why the call of `token` was refused.
    pub fn refused(&self, token: u64) -> Option<PyErr> {
        self.slots().all[place(token)].refused.take()
    }

    /// The completion that arrived for `token`.
    pub fn arrived(&self, token: u64) -> Option<Completion> {
        self.slots().all[place(token)].arrived.take()
    }

    /// The seconds since the call of `token` was submitted, if a notice has arrived since the last
    /// question.
    pub fn notice(&self, token: u64) -> Option<f64> {
        self.slots().all[place(token)].notice.take()
    }

    /// A future of `event_loop`, the loop of this port, that is done when a completion arrives for
    /// `token`.
    pub fn future<'py>(
        &self,
        event_loop: &Bound<'py, PyAny>,
        token: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let create = intern!(event_loop.py(), "create_future");
        let future = event_loop.call_method0(create)?;
        let before = self.slots().all[place(token)]
            .future
            .replace(future.clone().unbind());
        drop(before);
        Ok(future)
    }

    /// Arms the port. True if completions are waiting, and the port is not armed.
    fn arm(&self, py: Python<'_>) -> PyResult<bool> {
        let (mut ready, mut error) = (0, errors::blank());
        // SAFETY: both pointers are ours.
        let code =
            unsafe { (self.library.table.port_arm)(self.port, &raw mut ready, &raw mut error) };
        if code == TW_OK {
            Ok(ready != 0)
        } else {
            Err(errors::from_table(py, code, &error))
        }
    }

    /// Reaps up to `max` completions and wakes the tasks that wait for them. Returns the number of
    /// completions.
    fn reap(&self, py: Python<'_>, max: usize) -> PyResult<usize> {
        let mut reaped = [Completion::blank(); REAP];
        let max = max.min(REAP);
        let (mut count, mut error) = (0, errors::blank());
        let code = {
            let table = self.library.table;
            #[expect(clippy::cast_possible_truncation, reason = "at most REAP")]
            let max = max as u32;
            // SAFETY: the array has REAP entries, and the other pointers are ours.
            unsafe {
                (table.port_reap)(
                    self.port,
                    reaped.as_mut_ptr(),
                    max,
                    &raw mut count,
                    &raw mut error,
                )
            }
        };
        if code != TW_OK && code != TW_WOULD_PARK {
            return Err(errors::from_table(py, code, &error));
        }
        for raw in &reaped[..count as usize] {
            let completion = Completion::new(self.library, *raw);
            if completion.is_host_call() {
                host::start(&running_loop(py)?, self.library, &completion)?;
                continue;
            }
            if let Some(future) = self.deliver(completion) {
                // A future that was cancelled meanwhile refuses the result; its task unwinds and
                // gives the slot up.
                let _refused = future
                    .bind(py)
                    .call_method1(intern!(py, "set_result"), (py.None(),));
                future.drop_ref(py);
            }
        }
        Ok(count as usize)
    }

    /// Puts a completion into its slot and returns the future that waits there. If the slot was
    /// given up, the completion is released.
    fn deliver(&self, completion: Completion) -> Option<Py<PyAny>> {
        let token = completion.token();
        let mut slots = self.slots();
        let slot = slots.all.get_mut(place(token))?;
        if slot.generation != generation(token) {
            return None;
        }
        match completion.notice() {
            Some(seconds) => slot.notice = Some(seconds),
            None => slot.arrived = Some(completion),
        }
        slot.future.take()
    }

    fn close(&self) {
        if self.closed.swap(true, Ordering::Relaxed) || self.epoch != fork::epoch() {
            return;
        }
        // SAFETY: `open` opened it, and it is closed once.
        unsafe { (self.library.table.port_close)(self.port, std::ptr::null_mut()) };
        let dropped: Vec<_> = {
            let mut slots = self.slots();
            slots.kept.clear();
            slots
                .all
                .iter_mut()
                .map(|slot| (slot.arrived.take(), slot.future.take(), slot.refused.take()))
                .collect()
        };
        drop(dropped);
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ports() -> MutexGuard<'static, Vec<Weak<LoopPort>>> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Submits the kept calls of the loop at `loop_at`.
///
/// # Errors
/// An exception of the loop while it is notified of a refused call.
pub fn hand_over(py: Python<'_>, loop_at: usize) -> PyResult<()> {
    let mine: Vec<Arc<LoopPort>> = ports()
        .iter()
        .filter_map(Weak::upgrade)
        .filter(|port| port.loop_at == loop_at)
        .collect();
    mine.iter().try_for_each(|port| port.hand_over(py))
}

fn token(place: u32, generation: u32) -> u64 {
    (u64::from(generation) << 32) | u64::from(place)
}

#[expect(clippy::cast_possible_truncation, reason = "the low half")]
fn place(token: u64) -> usize {
    token as u32 as usize
}

fn generation(token: u64) -> u32 {
    (token >> 32) as u32
}

/// The loop's reference to a port. Only the loop has it: rule 5.
#[pyclass(frozen, weakref, module = "thalweg._native")]
pub struct LoopReader {
    port: Arc<LoopPort>,
}

#[pymethods]
impl LoopReader {
    /// Runs when the loop finds the fd readable.
    fn turn(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let port = &slf.get().port;
        let mut left = BUDGET;
        let mut armed_once = false;
        while left > 0 {
            let reaped = port.reap(py, left)?;
            left -= reaped;
            if reaped < REAP && left > 0 {
                if !port.arm(py)? {
                    return Ok(());
                }
                armed_once = true;
            }
        }
        // The fd is still readable, unless an attempt to arm the port has reset it.
        if armed_once {
            let turn = slf.getattr(intern!(py, "turn"))?;
            running_loop(py)?.call_method1(intern!(py, "call_soon"), (turn,))?;
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The garbage collector runs when Python allocates, never inside the lock.
        if let Ok(slots) = self.port.slots.try_lock() {
            for future in slots.all.iter().filter_map(|slot| slot.future.as_ref()) {
                visit.call(future)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        self.port.close();
    }
}

impl Drop for LoopReader {
    fn drop(&mut self) {
        self.port.close();
    }
}
