//! Small models of what users do not see, explored by loom. Those of the channels are in `tests/loom`.

mod lane;
mod waiters;

/// Explores a model of three threads, two of which wait, with one preemption less than the others have.
fn large_model(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound - 1);
    builder.check(model);
}
