//! The return type of an `async func`: the rest of its work.

use crate::call::Call;

type Work<T> = Box<dyn FnOnce(&Call) -> T + Send>;

/// The rest of the work of an `async func`. The method itself runs on the instance's actor with
/// access to the service's state, and should return soon. The task runs in another actor while the
/// service serves the next call.
pub struct Task<T>(pub(crate) TaskKind<T>);

pub(crate) enum TaskKind<T> {
    Ready(T),
    Work(Work<T>),
}

impl<T> Task<T> {
    /// A task with work to do.
    pub fn new(work: impl FnOnce(&Call) -> T + Send + 'static) -> Self {
        Self(TaskKind::Work(Box::new(work)))
    }

    /// A task that is already finished.
    pub fn ready(value: T) -> Self {
        Self(TaskKind::Ready(value))
    }
}

impl<T> std::fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            TaskKind::Ready(_) => "Task::ready",
            TaskKind::Work(_) => "Task::new",
        })
    }
}
