//! What a stream's writers and its reader share, and how it ends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use thalweg_queue::Gate;
use thalweg_runtime::TimerKey;

use crate::call::CallCore;
use crate::code::{Code, Failure};
use crate::service::{Policy, StreamOptions};
use crate::stream::receiving::OpenBatch;
use crate::stream::segment::Segment;

/// One bit each in the word of lanes; more writers share them.
pub(super) const LANES: usize = 64;
/// Most records in a segment, and bytes of tails for each: a path and a line of text. Together they make segments
/// of some 64 KiB, which stay in the second-level cache between writer and reader.
pub(super) const SLOTS: u32 = 256;
pub(super) const TAIL_BYTES: u32 = 192;

pub(super) struct Lane {
    /// The writer's side: its last segment.
    pub(super) open: Mutex<Option<Arc<Segment>>>,
    /// Segments from the one being read to the last.
    pub(super) segments: Mutex<VecDeque<Arc<Segment>>>,
    /// Segments of this lane that are not given back.
    pub(super) taken: AtomicU32,
}

#[derive(Default)]
pub(super) struct Credit {
    pub(super) spare: Vec<Arc<Segment>>,
    pub(super) taken: u32,
    pub(super) waiting: Vec<Waker>,
    pub(super) free_lanes: Vec<u8>,
    pub(super) lanes: u8,
}

#[derive(Default)]
pub(super) struct Latest {
    pub(super) newest: Option<Arc<Segment>>,
    pub(super) conflated: u64,
}

#[derive(Default)]
pub(super) struct Reading {
    /// Records of the first segment of each lane that were delivered.
    pub(super) read: Vec<u32>,
    pub(super) next_lane: usize,
    pub(super) sequence: u64,
    pub(super) open: Option<OpenBatch>,
    /// When a batch was last given, and how long the reader lingers after it: see [`Linger`](super::waking).
    pub(super) last_given: u64,
    pub(super) linger: u64,
    /// Counts requests to be woken; an older one's timer finds another number here.
    pub(super) request: u64,
    pub(super) later: Option<TimerKey>,
}

/// A stream, whatever its records are. See the module for the rules.
pub struct StreamCore {
    pub(super) call: Arc<CallCore>,
    pub(super) stride: u32,
    pub(super) options: StreamOptions,
    /// Records in a segment, and segments in the stream.
    pub(super) slots: u32,
    pub(super) most: u32,
    pub(super) lanes: [OnceLock<Lane>; LANES],
    pub(super) ready: AtomicU64,
    pub(super) gate: Gate,
    pub(super) credit: Mutex<Credit>,
    pub(super) latest: Mutex<Latest>,
    pub(super) writers: AtomicU32,
    pub(super) ending: OnceLock<Failure>,
    pub(super) closed: AtomicBool,
    /// Somebody is reading.
    pub(super) busy: AtomicBool,
    pub(super) reading: Mutex<Reading>,
}

impl std::fmt::Debug for StreamCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("options", &self.options)
            .field("ending", &self.ending)
            .finish_non_exhaustive()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic under one of these locks can only be the service's `Encode`, which leaves an uncommitted slot.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StreamCore {
    pub(crate) fn new(
        call: &Arc<CallCore>,
        size: u32,
        align: u32,
        options: StreamOptions,
    ) -> Arc<Self> {
        let slots = match options.policy {
            Policy::Block => (options.capacity / 32).clamp(16, SLOTS),
            Policy::Latest => 1,
        };
        Arc::new(Self {
            call: Arc::clone(call),
            stride: size.next_multiple_of(align).max(1),
            options,
            slots,
            most: options.capacity.div_ceil(slots),
            lanes: [const { OnceLock::new() }; LANES],
            ready: AtomicU64::new(0),
            gate: Gate::new(),
            credit: Mutex::default(),
            latest: Mutex::default(),
            writers: AtomicU32::new(1),
            ending: OnceLock::new(),
            closed: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            reading: Mutex::default(),
        })
    }

    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Code::Closed.because("the reader has closed the stream"));
        }
        match self.ending.get() {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }

    /// Rule 5.
    pub(crate) fn end(&self, why: Failure) {
        if self.ending.set(why).is_err() {
            return;
        }
        self.wake_writers();
        self.gate.signal();
        self.call.forget_timer_if_done();
    }

    pub(super) fn wake_writers(&self) {
        let waiting = std::mem::take(&mut lock(&self.credit).waiting);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// The reader has had enough. Writers see it and stop; an open batch is invalid.
    pub fn close(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        let open = lock(&self.reading).open.take();
        drop(open);
        self.end(Code::Cancelled.because("the reader has closed the stream"));
        self.wake_writers();
        self.gate.signal();
        self.call.forget_timer_if_done();
    }
}
