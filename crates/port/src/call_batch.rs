//! Calls of one Rust client that are submitted together.

use std::sync::{Arc, Mutex};

use thalweg_queue::no_preempt::lock;

use crate::call::{CallRef, Destination};
use crate::code::Failure;
use crate::completion::CallBuffer;
use crate::instance::guard::InstanceGuard;
use crate::instance::submit::MailboxWriter;
use crate::message_handles::close_unread_streams;

/// Buffers of calls that are not submitted yet.
#[derive(Debug)]
pub(crate) struct CallBatch {
    guard: Arc<InstanceGuard>,
    state: Mutex<BatchState>,
}

#[derive(Debug)]
struct BatchState {
    buffers: Vec<CallBuffer>,
    /// The batch has been submitted. Further calls are submitted at once.
    is_finished: bool,
}

impl CallBatch {
    pub(crate) fn new(guard: &Arc<InstanceGuard>) -> Self {
        Self {
            guard: Arc::clone(guard),
            state: Mutex::new(BatchState {
                buffers: Vec::new(),
                is_finished: false,
            }),
        }
    }

    /// Begins a call and adds it to the batch.
    ///
    /// # Errors
    /// The errors of a single call, except that a full mailbox is detected only at the submission.
    pub(crate) fn add(
        &self,
        method: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
        deadline: u64,
    ) -> Result<CallRef, Failure> {
        let instance = self.guard.instance();
        let (call, buffer) =
            instance.begin(method, write, Destination::Waiter, deadline, CallRef::clone)?;
        if let Some(buffer) = buffer {
            let is_finished = {
                let mut state = lock(&self.state);
                state.buffers.push(buffer);
                state.is_finished
            };
            if is_finished {
                self.submit();
            }
        }
        Ok(call)
    }

    /// Submits all calls of the batch. A call that is refused ends with that error.
    pub(crate) fn submit(&self) {
        let buffers = std::mem::take(&mut lock(&self.state).buffers);
        let mut writer = MailboxWriter::new(self.guard.instance());
        for buffer in buffers {
            if buffer.call().core.has_ended() {
                close_unread_streams(&buffer.data);
            } else if let Err((mut buffer, why)) = writer.push_or_wait(buffer, true) {
                close_unread_streams(&buffer.data);
                buffer.fail(why);
                buffer.deliver();
            }
        }
    }
}

/// Submits the batch when it is dropped. Calls that are added later are submitted at once.
pub(crate) struct SubmitOnDrop<'a>(pub(crate) &'a CallBatch);

impl Drop for SubmitOnDrop<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).is_finished = true;
        self.0.submit();
    }
}
