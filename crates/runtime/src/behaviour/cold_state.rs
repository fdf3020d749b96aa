//! The parts of a body that its turns do not need.

use std::sync::Arc;

use super::incarnation::{ExitListener, StateFactory};
use super::weak_ref::Identity;
use crate::control::Control;
use crate::exit::Signal;

/// Receives the result when the actor ends.
pub(super) type OnEnd = Box<dyn FnOnce(Signal) + Send>;

/// State that is needed only when an actor ends or is reached by its address.
pub(super) struct ColdState<A> {
    pub(super) control: Option<Arc<Control>>,
    /// No incarnation runs.
    pub(super) ended: bool,
    /// `None` if the actor is not supervised and has no name.
    rare: Option<Box<RareState<A>>>,
}

/// State that few actors need.
pub(super) struct RareState<A> {
    pub(super) on_end: Option<OnEnd>,
    pub(super) exit_listener: Option<ExitListener>,
    pub(super) factory: Option<StateFactory<A>>,
    pub(super) identity: Option<Identity>,
}

impl<A> ColdState<A> {
    pub(super) fn new(factory: Option<StateFactory<A>>, on_end: Option<OnEnd>) -> Self {
        let mut cold = Self {
            control: None,
            ended: factory.is_some(),
            rare: None,
        };
        if factory.is_some() || on_end.is_some() {
            let rare = cold.rare_or_new();
            (rare.factory, rare.on_end) = (factory, on_end);
        }
        cold
    }

    pub(super) fn rare(&mut self) -> Option<&mut RareState<A>> {
        self.rare.as_deref_mut()
    }

    pub(super) fn rare_or_new(&mut self) -> &mut RareState<A> {
        self.rare.get_or_insert_with(|| {
            Box::new(RareState {
                on_end: None,
                exit_listener: None,
                factory: None,
                identity: None,
            })
        })
    }

    pub(super) fn exit_listener(&self) -> Option<&ExitListener> {
        self.rare.as_ref()?.exit_listener.as_ref()
    }
}
