//! Resources of a guest.

use std::sync::Arc;

use thalweg_runtime::native;
use thalweg_wire::message;

use super::GuestObject;
use super::states::GuestInstance;
use crate::resource;

/// An object of a guest in the handle table.
pub(crate) struct GuestResource {
    instance: Arc<GuestInstance>,
    /// Its number among the objects of the instance.
    number: u64,
    /// The number of its state.
    pub(crate) state: u64,
    pub(crate) object: GuestObject,
}

impl GuestResource {
    /// Takes over an object of the state that serves a call. `None`: the guest does not have the call
    /// any more.
    pub(crate) fn new(
        instance: &Arc<GuestInstance>,
        call: u64,
        object: GuestObject,
    ) -> Option<Self> {
        let (state, number) = instance.add_object(call, object)?;
        Some(Self {
            instance: Arc::clone(instance),
            number,
            state,
            object,
        })
    }

    /// Records that only the guest has the handle. Returns `false` if its state has ended.
    pub(crate) fn keep_handle(&self, handle: u64) -> bool {
        self.instance
            .set_kept_handle(self.state, self.number, Some(handle))
    }

    /// Records that a host got the resources in a message.
    #[inline]
    pub(crate) fn note_given(message: &[u8]) {
        // Most messages have no handles: their number is after 8 bytes.
        if message.get(8..12) != Some(&[0; 4]) {
            Self::note_each_given(message);
        }
    }

    #[cold]
    fn note_each_given(message: &[u8]) {
        let Ok(message) = message::open_any(message) else {
            return;
        };
        for handle in message.handles() {
            // Without a further reference to the object: it is dropped in a turn.
            resource::with_any_object(handle, |resource: &Self| {
                let instance = &resource.instance;
                instance.set_kept_handle(resource.state, resource.number, None);
            });
        }
    }

    /// The guest owns the object from here on. Returns `false` if its state has ended, with the object.
    pub(crate) fn take_back(&self) -> bool {
        self.instance.take_object(self.state, self.number).is_some()
    }
}

impl Drop for GuestResource {
    /// This is in a turn, as for every resource, unless the guest owns the object.
    fn drop(&mut self) {
        if let Some((guest, state)) = self.instance.take_object(self.state, self.number) {
            native(|| guest.drop_resource(state, self.object));
        }
    }
}
