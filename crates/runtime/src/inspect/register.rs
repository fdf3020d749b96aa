//! The behaviour actors of a runtime that keeps books, in as many tables as it has workers, each behind a lock of its own.
//!
//! 1. An actor is put in when its body is made, and takes itself out when that goes. A table keeps none of them alive.
//! 2. Who walks a table takes references under its lock and lets them go after: the last one may run destructors.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use thalweg_queue::no_preempt::lock;

use super::info::ActorInfo;
use crate::exit::{Numbers, Reached};
use crate::id::ActorId;
use crate::worker;

type Table = Mutex<HashMap<u64, Weak<dyn Reached>, BuildHasherDefault<Numbers>>>;

pub(crate) struct Register {
    tables: Box<[Arc<Table>]>,
}

/// A table is made smaller when a quarter of it is in use, unless it is as small as this.
const SMALL: usize = 64;

impl Register {
    pub(crate) fn new(tables: usize) -> Self {
        Self {
            tables: (0..tables).map(|_| Arc::default()).collect(),
        }
    }

    /// Of a new actor, which the caller begins.
    pub(crate) fn books(&self, id: ActorId) -> Books {
        let key = id.number();
        let table = &self.tables[key as usize % self.tables.len()];
        let books = Books {
            table: Arc::clone(table),
            key,
            parent: AtomicU64::new(0),
            supervised: AtomicBool::new(false),
            slices: AtomicU64::new(0),
            ran: AtomicU64::new(0),
        };
        books.begin(false);
        books
    }

    pub(crate) fn each(&self, mut see: impl FnMut(ActorInfo)) {
        for table in &self.tables {
            let bodies: Vec<_> = lock(table).values().filter_map(Weak::upgrade).collect();
            for body in bodies {
                see(body.seen().into_info());
            }
        }
    }
}

/// What is written down of one behaviour actor, over all its incarnations.
pub(crate) struct Books {
    table: Arc<Table>,
    key: u64,
    /// 0: a thread.
    parent: AtomicU64,
    supervised: AtomicBool,
    slices: AtomicU64,
    ran: AtomicU64,
}

impl Books {
    /// Rule 1, once.
    pub(crate) fn enter(&self, body: Weak<dyn Reached>) {
        lock(&self.table).insert(self.key, body);
    }

    /// The caller begins an incarnation.
    pub(crate) fn begin(&self, supervised: bool) {
        let parent = worker::current_actor().map_or(0, ActorId::number);
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

    /// A turn has had so many slices, and nanoseconds. Two turns of one actor may come here at once: the next begins before this one has ended.
    pub(crate) fn add(&self, (slices, ns): (u64, u64)) {
        self.slices.fetch_add(slices, Ordering::Relaxed);
        self.ran.fetch_add(ns, Ordering::Relaxed);
    }

    /// Slices, and nanoseconds, of the turns that are over.
    pub(crate) fn total(&self) -> (u64, u64) {
        (
            self.slices.load(Ordering::Relaxed),
            self.ran.load(Ordering::Relaxed),
        )
    }
}

impl Drop for Books {
    fn drop(&mut self) {
        let mut table = lock(&self.table);
        let body = table.remove(&self.key);
        if table.capacity() > SMALL && table.len() < table.capacity() / 4 {
            let half = table.capacity() / 2;
            table.shrink_to(half);
        }
        drop(table);
        drop(body);
    }
}
