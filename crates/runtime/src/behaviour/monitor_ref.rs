//! What a behaviour actor hears of others' ends.

use std::fmt;
use std::sync::{Arc, Mutex};

use thalweg_queue::no_preempt::lock;

use super::body::Body;
use super::envelope_queue::{BoxedEnvelope, Payload};
use super::{Actor, Context};
use crate::exit::{Control, Down, Pid, Watch};
use crate::id::ActorId;

/// A behaviour actor's monitor. Dropped it goes on; see [`demonitor`](Self::demonitor).
pub struct Monitored {
    control: Arc<Control>,
    /// Where it is in the list. `None`: it was never there.
    place: Option<usize>,
    down: Arc<Mutex<Option<Down>>>,
}

/// The letter to the incarnation that asked, which is made with the monitor and so needs no memory at the end.
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

impl Monitored {
    pub(super) fn new<A: Actor>(body: &Arc<Body<A>>, other: &Pid) -> Self {
        let down = Arc::new(Mutex::new(None));
        let envelope = BoxedEnvelope::new(DownMessage(body.id(), Arc::clone(&down)));
        let (slot, me) = (Arc::clone(&down), Arc::downgrade(body));
        let watch = Watch::Tell(Box::new(move |ended| {
            *lock(&slot) = Some(ended);
            if let Some(body) = me.upgrade() {
                body.push_system(envelope);
            }
        }));
        let control = Arc::clone(other.control());
        let place = control.watch_or_tell(watch);
        Self {
            control,
            place,
            down,
        }
    }

    /// Whom it watches.
    pub fn id(&self) -> ActorId {
        self.control.id
    }

    /// Takes it back: [`Actor::on_down`] is not called for it any more, not even if the end is on its way.
    pub fn demonitor(self) {
        if let Some(place) = self.place {
            self.control.unwatch(place);
        }
        lock(&self.down).take();
    }
}

impl fmt::Debug for Monitored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitored").field("id", &self.id()).finish()
    }
}
