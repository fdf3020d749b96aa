//! Calls that the service of a call makes for it, and the code of the service.

use std::sync::Arc;

use thalweg_queue::no_preempt::lock;

use super::{CallCore, CallRef};
use crate::code::{Code, Failure};
use crate::handles;
use crate::nested::{catch_panic, end_deferred, enter, log_panic};

impl CallCore {
    /// The deadline of a call that is made on behalf of the call of this generation.
    ///
    /// # Errors
    /// The parent call was stopped, so it may not make further calls.
    pub(crate) fn nested_deadline(self: &Arc<Self>, generation: u32) -> Result<u64, Failure> {
        // As a user, so that no other call begins meanwhile.
        let user = CallRef::enter(self, generation);
        let state = lock(&self.state);
        match &state.stop_reason {
            _ if self.open_state.generation() != generation => Ok(u64::MAX),
            Some(why) => Err(nested_failure(why)),
            // The parent has answered, so the new call is independent of it.
            None => Ok(user.as_ref().map_or(u64::MAX, |call| call.deadline())),
        }
    }

    /// Records that `call` was made on behalf of the call of this generation and ends with it.
    pub(crate) fn adopt(self: &Arc<Self>, generation: u32, call: &CallRef) {
        // As a user, so that no other call begins meanwhile.
        let user = CallRef::enter(self, generation);
        let (stop_reason, nested) = {
            let mut state = match &user {
                Some(user) => user.lock_to_use(),
                None => lock(&self.state),
            };
            if self.open_state.generation() != generation {
                return;
            }
            let mut prune = false;
            if user.is_some() {
                state.nested.push(call.handle());
                prune = state.nested.len() >= 16 && state.nested.len().is_power_of_two();
            }
            let nested = prune.then(|| std::mem::take(&mut state.nested));
            (state.stop_reason.clone(), nested)
        };
        if let Some(why) = stop_reason {
            call.stop(nested_failure(&why));
        }
        if let Some(mut nested) = nested {
            // Not under the lock, under which no other lock may be taken.
            nested.retain(|call| handles::with(*call, |_| Some(())).is_ok());
            let mut state = lock(&self.state);
            if state.stop_reason.is_none() {
                state.nested.append(&mut nested);
                return;
            }
            let why = state.stop_reason.clone();
            drop(state);
            if let Some(why) = why {
                nested.into_iter().for_each(|call| stop_nested(call, &why));
            }
        }
    }
}

/// Stops a call, if it has not ended, because its parent call was stopped.
pub(super) fn stop_nested(call: u64, why: &Failure) {
    if let Ok(call) = CallRef::find(call) {
        call.stop(nested_failure(why));
    }
}

pub(crate) fn nested_failure(why: &Failure) -> Failure {
    let code = match why.code {
        Code::TimedOut => Code::TimedOut,
        _ => Code::Cancelled,
    };
    code.because(format!(
        "the call that this one was made for ended: {}",
        why.message
    ))
}

/// Runs service code for the call with this handle, or for no call if it is 0.
///
/// # Errors
/// The code panicked.
#[inline]
pub(crate) fn catch_in_call(handle: u64, code: impl FnOnce()) -> Result<(), Failure> {
    let _within = enter(handle);
    catch_panic(code).inspect_err(|why| after_panic(handle, why))
}

#[cold]
#[inline(never)]
fn after_panic(handle: u64, why: &Failure) {
    end_deferred(handle, why);
    let call = handles::find_reused::<CallCore>(handle);
    log_panic(call.map(|(core, _)| core.method_name()), why);
}
