//! Actors, supervisors, timers and channels in Rust.

use std::io::{Read, Write};
use std::time::Duration;

use thalweg::channel::{Options, WaitStrategy, mpsc};
use thalweg::runtime::supervisor::{
    ChildSpec, Strategy, Supervisor, SupervisorStartError as TreeError,
};
use thalweg::runtime::{
    Actor, Builder, CallError, Config, Context, ExitReason, Handle, Handler, JoinError, Mailbox,
    Runtime, StartError, block_on, channel, init, io, sleep,
};

use super::{Problem, Step};
use crate::fault::{STACKS, during, during_on};

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Thread(_) => Self::new("start.thread", error),
            other => Self::violation(other),
        }
    }
}

impl From<JoinError> for Problem {
    fn from(error: JoinError) -> Self {
        match error {
            JoinError::NoStack(_) => Self::new("join.no_stack", error),
            other => Self::violation(other),
        }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Ended => Self::new("call.ended", error),
            CallError::TimedOut => Self::new("call.timed_out", error),
            other => Self::violation(other),
        }
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Self::new(&format!("io.{number}"), error),
            None => Self::violation(error),
        }
    }
}

/// The problem for an exit reason, by its kind, for example `exit.no_stack`.
pub fn exits_with(reason: &ExitReason) -> Problem {
    Problem::new(&format!("exit.{}", reason.kind()), reason)
}

impl From<TreeError> for Problem {
    fn from(error: TreeError) -> Self {
        match &error {
            TreeError::Child { reason, .. } | TreeError::Ended(reason) => exits_with(reason),
            other => Self::violation(other),
        }
    }
}

fn config() -> Config {
    Config::with_workers(2)
}

/// A runtime that was created before any shortage, and has started a worker and a stack.
fn started() -> Runtime {
    let config = config().max_stacks(STACKS as usize);
    let runtime = Runtime::start(config).expect("nothing is refused yet");
    let begun = runtime.handle().spawn(|| ());
    begun.join().expect("as above");
    runtime
}

pub(super) fn start() -> Step {
    Box::new(|| {
        during(|| {
            let runtime = Runtime::start(config())?;
            let four = runtime.handle().spawn(|| 4).join()?;
            drop(runtime);
            match four {
                4 => Ok(()),
                other => Err(Problem::violation(other)),
            }
        })
    })
}

pub(super) fn run() -> Step {
    Box::new(|| {
        during(|| {
            let main = || {
                let others: Vec<_> = (0..4).map(|n| thalweg::runtime::spawn(move || n)).collect();
                others
                    .into_iter()
                    .map(thalweg::runtime::JoinHandle::join)
                    .sum::<Result<i32, _>>()
            };
            let sum = init(config())?.run(main)?;
            match sum {
                6 => Ok(()),
                other => Err(Problem::violation(other)),
            }
        })
    })
}

/// A future that sleeps outside of any actor.
pub(super) fn sleep_async() -> Step {
    Box::new(|| {
        during(|| block_on(thalweg::runtime::sleep_async(Duration::from_millis(1))));
        Ok(())
    })
}

pub(super) fn spawn() -> Step {
    let runtime = started();
    Box::new(move || {
        let runtime = runtime.handle();
        during_on(runtime, || {
            let mut all = Vec::with_capacity(4);
            for number in 0..4 {
                let work = move || {
                    sleep(Duration::from_millis(1));
                    number
                };
                all.push(Builder::new().name("counter").spawn_on(runtime, work));
            }
            let mut ended = Ok(());
            for (expected, handle) in all.into_iter().enumerate() {
                match handle.join() {
                    Ok(number) if number == expected => {}
                    Ok(other) => return Err(Problem::violation(other)),
                    Err(why) => ended = Err(why.into()),
                }
            }
            ended
        })
    })
}

/// Sums numbers.
struct Counter(u64);

impl Actor for Counter {}

struct Add(u64);

impl Handler<Add> for Counter {
    type Reply = u64;

    fn handle(&mut self, Add(more): Add, _: &Context<'_, Self>) -> u64 {
        self.0 += more;
        self.0
    }
}

/// Longer than other actors hold the stacks.
const LONG: Duration = Duration::from_secs(5);

/// An actor that is idle when the shortage occurs keeps its state.
pub(super) fn actor() -> Step {
    let runtime = started();
    Box::new(move || {
        let runtime = runtime.handle();
        let counter = runtime.start(Counter(40));
        let counted = counter.call(Add(1));
        if counted != Ok(41) {
            return Err(Problem::violation(format!("before: {counted:?}")));
        }
        let other = during_on(runtime, || {
            let other = runtime.start(Counter(0));
            counter.call_timeout(Add(0), LONG)?;
            let ended = other.call_timeout(Add(1), LONG);
            other.stop();
            ended
        });
        match counter.call_timeout(Add(1), LONG) {
            Ok(42) => other.map(drop).map_err(Problem::from),
            lost => Err(Problem::violation(format!("its state is lost: {lost:?}"))),
        }
    })
}

/// A tree that is idle when the shortage occurs, and a tree that is started during the shortage.
pub(super) fn supervise() -> Step {
    let runtime = started();
    Box::new(move || {
        let runtime = runtime.handle();
        let violated = |what: &str, why: String| Problem::violation(format!("{what}: {why}"));
        let tree = |runtime: &Handle| {
            let make = || Ok::<_, ExitReason>(Counter(40));
            let (spec, counter) = ChildSpec::actor_on(runtime, "counter", Mailbox::default(), make);
            let job = ChildSpec::job_on(runtime, "job", || sleep(Duration::from_secs(3_600)));
            let tree = Supervisor::new(Strategy::OneForOne)
                .intensity(2, Duration::from_secs(3_600))
                .child(spec)
                .child(job);
            (tree, counter)
        };
        let (old, counter) = tree(runtime);
        let old = old
            .start_on(runtime)
            .map_err(|why| violated("before", why.to_string()))?;
        counter.call(Add(1)).map_err(Problem::from)?;
        let begun = during_on(runtime, || {
            let _ = counter.pid().kill();
            let (new, new_counter) = tree(runtime);
            let begun = new.start_on(runtime).map_err(Problem::from);
            match begun {
                Ok(new) => {
                    let called = new_counter.call_timeout(Add(1), LONG);
                    let monitor = new.pid().monitor();
                    new.stop();
                    let down = monitor.wait().reason;
                    match down.kind() {
                        "shutdown" | "normal" => called.map(drop).map_err(Problem::from),
                        _ => Err(exits_with(&down)),
                    }
                }
                Err(why) => Err(why),
            }
        });
        // The killed child has been restarted, and its tree has two children.
        let back = counter.call_timeout(Add(1), LONG);
        if back != Ok(41) {
            return Err(violated("the child that was killed", format!("{back:?}")));
        }
        match old.which_children() {
            Ok(children) if children.len() == 2 => {}
            other => return Err(violated("the old tree", format!("{other:?}"))),
        }
        let monitor = old.pid().monitor();
        old.stop();
        monitor.wait();
        begun
    })
}

/// Deadlines of actors and of calls.
pub(super) fn timers() -> Step {
    let runtime = started();
    Box::new(move || {
        let runtime = runtime.handle();
        let counter = runtime.start(Counter(0));
        during_on(runtime, || {
            let later = counter.send_after(Duration::from_millis(1), Add(5));
            let slept = runtime.spawn(|| sleep(Duration::from_millis(1)));
            slept.join()?;
            drop(later);
            counter.call_timeout(Add(0), LONG)?;
            Ok(())
        })
    })
}

pub(super) fn blocking() -> Step {
    let runtime = started();
    Box::new(move || {
        let runtime = runtime.handle();
        during_on(runtime, || {
            let four = runtime.spawn(|| io::blocking(|| 4)).join()?;
            match four {
                4 => Ok(()),
                other => Err(Problem::violation(other)),
            }
        })
    })
}

/// An actor that waits for a pipe.
pub(super) fn readiness() -> Step {
    Box::new(move || {
        // Created anew each time, because a worker keeps its poller.
        let runtime = started();
        let runtime = runtime.handle();
        let (mut reader, mut writer) = std::io::pipe()?;
        let read = during_on(runtime, || {
            let waits = runtime.spawn(move || {
                io::wait_readable(&reader, None)?;
                let mut byte = [0];
                reader.read_exact(&mut byte)?;
                Ok::<_, std::io::Error>(byte[0])
            });
            let written = writer.write_all(&[7]);
            // If the actor failed before it read, a write would fail.
            let read = waits.join()??;
            written?;
            Ok::<_, Problem>(read)
        })?;
        match read {
            7 => Ok(()),
            other => Err(Problem::violation(other)),
        }
    })
}

/// A runtime that has parked actors, behaviour actors and a timer.
pub(super) fn shutdown() -> Step {
    Box::new(|| {
        let runtime = started();
        let handle = runtime.handle().clone();
        let (gate, waits) = channel::<()>();
        let parked = handle.spawn(move || {
            let _ = waits.recv();
        });
        let asleep = handle.spawn(|| sleep(Duration::from_secs(3_600)));
        let idle = handle.start(Counter(0));
        idle.call(Add(1))?;
        during(|| drop(runtime));
        drop(gate);
        let called = idle.call_timeout(Add(1), LONG);
        match (parked.join(), asleep.join(), called) {
            (Err(JoinError::Stopped) | Ok(()), Err(JoinError::Stopped), Err(CallError::Ended)) => {
                Ok(())
            }
            other => Err(Problem::violation(format!("{other:?}"))),
        }
    })
}

/// A channel whose capacity the caller chooses.
pub(super) fn channels() -> Step {
    Box::new(|| {
        during(|| {
            let options = Options::new().wait_strategy(WaitStrategy::default());
            let (sender, receiver) = mpsc::with::<u64>(1 << 16, options)
                .map_err(|why| Problem::new("channel.refused", why))?;
            sender
                .try_send(7)
                .map_err(|why| Problem::new("channel.send", why))?;
            match receiver.try_recv() {
                Ok(7) => Ok(()),
                other => Err(Problem::violation(format!("{other:?}"))),
            }
        })
    })
}
