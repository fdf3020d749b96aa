//! The monitors of behaviour actors.

use std::fmt;
use std::sync::{Arc, Mutex};

use thalweg_queue::no_preempt::lock;

use super::body::Body;
use super::envelope_queue::{BoxedEnvelope, Payload};
use super::{Actor, Context};
use crate::control::{Control, Down, DownListener};
use crate::exit::Pid;
use crate::id::ActorId;

/// A behaviour actor's monitor. Dropping it does not end the monitor; see
/// [`demonitor`](Self::demonitor).
pub struct MonitorRef {
    control: Arc<Control>,
    /// The index in the list of listeners. `None`: the actor had ended, so the monitor was not
    /// added.
    index: Option<usize>,
    down: Arc<Mutex<Option<Down>>>,
}

/// The down message to the monitoring incarnation. It is allocated with the monitor, so that the
/// exit needs no memory.
struct DownMessage(ActorId, Arc<Mutex<Option<Down>>>);

impl<A: Actor> Payload<A> for DownMessage {
    fn deliver(self, actor: &mut A, context: &Context<'_, A>) {
        let down = lock(&self.1).take();
        if let Some(down) = down
            && context.id() == self.0
        {
            actor.on_down(down, context);
        }
    }
}

impl MonitorRef {
    pub(super) fn new<A: Actor>(body: &Arc<Body<A>>, other: &Pid) -> Self {
        let down = Arc::new(Mutex::new(None));
        let envelope = BoxedEnvelope::new(DownMessage(body.id(), Arc::clone(&down)));
        let (slot, me) = (Arc::clone(&down), Arc::downgrade(body));
        let listener = DownListener::Callback(Box::new(move |ended| {
            *lock(&slot) = Some(ended);
            if let Some(body) = me.upgrade() {
                body.push_system(envelope);
            }
        }));
        let control = Arc::clone(other.control());
        let index = control.add_listener_or_notify(listener);
        Self {
            control,
            index,
            down,
        }
    }

    /// The number of the monitored actor.
    pub fn id(&self) -> ActorId {
        self.control.id
    }

    /// Ends the monitor: [`Actor::on_down`] is not called for it any more, even if the actor has
    /// already ended.
    pub fn demonitor(self) {
        if let Some(index) = self.index {
            self.control.remove_listener(index);
        }
        lock(&self.down).take();
    }
}

impl fmt::Debug for MonitorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitorRef")
            .field("id", &self.id())
            .finish()
    }
}
