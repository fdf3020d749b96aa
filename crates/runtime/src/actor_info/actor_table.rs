//! The table of all behaviour actors of a runtime with [`Config::inspect`](crate::Config::inspect).
//! It has one shard per worker, each behind its own lock.
//!
//! 1. An actor is added when its body is created, and removes itself when the body is dropped. The
//!    table does not keep actors alive.
//! 2. A walk takes strong references under the lock and drops them after it is released, since the
//!    last one may run destructors.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use thalweg_queue::no_preempt::lock;

use super::{ActorInfo, Snapshot};
use crate::id::{ActorId, ActorIdHasher};

type Shard = Mutex<HashMap<u64, Weak<dyn Snapshot>, BuildHasherDefault<ActorIdHasher>>>;

pub(crate) struct ActorTable {
    shards: Box<[Arc<Shard>]>,
}

/// A shard shrinks when a quarter of its capacity is in use, but not below this capacity.
const MIN_CAPACITY: usize = 64;

impl ActorTable {
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            shards: (0..shards).map(|_| Arc::default()).collect(),
        }
    }

    /// Creates the statistics of a new actor, which `parent` starts.
    pub(crate) fn register(&self, id: ActorId, parent: Option<ActorId>) -> ActorStats {
        let key = id.number();
        let shard = &self.shards[key as usize % self.shards.len()];
        let stats = ActorStats {
            shard: Arc::clone(shard),
            key,
            parent: AtomicU64::new(0),
            supervised: AtomicBool::new(false),
            slices: AtomicU64::new(0),
            worker_ns: AtomicU64::new(0),
        };
        stats.start_incarnation(parent, false);
        stats
    }

    pub(crate) fn each(&self, mut see: impl FnMut(ActorInfo)) {
        for shard in &self.shards {
            let bodies: Vec<_> = lock(shard).values().filter_map(Weak::upgrade).collect();
            for body in bodies {
                see(body.snapshot().into_info());
            }
        }
    }
}

/// The statistics of one behaviour actor over all its incarnations.
pub(crate) struct ActorStats {
    shard: Arc<Shard>,
    key: u64,
    /// 0: a thread.
    parent: AtomicU64,
    supervised: AtomicBool,
    slices: AtomicU64,
    worker_ns: AtomicU64,
}

impl ActorStats {
    /// Rule 1. Called once.
    pub(crate) fn insert_body(&self, body: Weak<dyn Snapshot>) {
        lock(&self.shard).insert(self.key, body);
    }

    /// `parent` starts an incarnation.
    pub(crate) fn start_incarnation(&self, parent: Option<ActorId>, supervised: bool) {
        let parent = parent.map_or(0, ActorId::number);
        self.parent.store(parent, Ordering::Relaxed);
        self.supervised.store(supervised, Ordering::Relaxed);
    }

    pub(crate) fn parent(&self) -> Option<ActorId> {
        let parent = self.parent.load(Ordering::Relaxed);
        (parent != 0).then(|| ActorId::from_number(parent))
    }

    pub(crate) fn supervised(&self) -> bool {
        self.supervised.load(Ordering::Relaxed)
    }

    /// Adds the slices and nanoseconds of a turn. Two turns of one actor may call this at the same
    /// time, since the next one can start before this one has ended.
    pub(crate) fn add(&self, (slices, ns): (u64, u64)) {
        self.slices.fetch_add(slices, Ordering::Relaxed);
        self.worker_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Slices and nanoseconds of the finished turns.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (
            self.slices.load(Ordering::Relaxed),
            self.worker_ns.load(Ordering::Relaxed),
        )
    }
}

impl Drop for ActorStats {
    fn drop(&mut self) {
        let mut shard = lock(&self.shard);
        let body = shard.remove(&self.key);
        if shard.capacity() > MIN_CAPACITY && shard.len() < shard.capacity() / 4 {
            let half = shard.capacity() / 2;
            shard.shrink_to(half);
        }
        drop(shard);
        drop(body);
    }
}
