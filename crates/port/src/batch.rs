//! Calls of one client in Rust that are made together.

use std::sync::{Arc, Mutex};

use thalweg_queue::quiet::lock;

use crate::call::{CallRef, To};
use crate::client::Opened;
use crate::code::Failure;
use crate::instance::submit::Burst;
use crate::parcel::{Parcel, close_unread};

/// Their parcels, until they go.
#[derive(Debug)]
pub(crate) struct Batch {
    opened: Arc<Opened>,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    parcels: Vec<Parcel>,
    /// Who made it is done: what comes now goes at once.
    is_over: bool,
}

impl Batch {
    pub(crate) fn new(opened: &Arc<Opened>) -> Self {
        Self {
            opened: Arc::clone(opened),
            kept: Mutex::new(Kept {
                parcels: Vec::new(),
                is_over: false,
            }),
        }
    }

    /// Makes a call and keeps it.
    ///
    /// # Errors
    /// As of one that is made alone, but that nobody knows yet whether there is room.
    pub(crate) fn keep(
        &self,
        method: u32,
        write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, Failure>,
        deadline: u64,
    ) -> Result<CallRef, Failure> {
        let instance = self.opened.instance();
        let (call, parcel) = instance.begin(method, write, To::Waiter, deadline, CallRef::clone)?;
        if let Some(parcel) = parcel {
            let is_over = {
                let mut kept = lock(&self.kept);
                kept.parcels.push(parcel);
                kept.is_over
            };
            if is_over {
                self.go();
            }
        }
        Ok(call)
    }

    /// Has them go. What is refused ends so.
    pub(crate) fn go(&self) {
        let parcels = std::mem::take(&mut lock(&self.kept).parcels);
        let mut burst = Burst::new(self.opened.instance());
        for parcel in parcels {
            if parcel.call().core.has_ended() {
                close_unread(&parcel.data);
            } else if let Err((mut parcel, why)) = burst.post(parcel, true) {
                close_unread(&parcel.data);
                parcel.fail(why);
                parcel.deliver();
            }
        }
    }
}

/// Has them go when it is dropped, and those that still come.
pub(crate) struct Ends<'a>(pub(crate) &'a Batch);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        lock(&self.0.kept).is_over = true;
        self.0.go();
    }
}
