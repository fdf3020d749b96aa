//! Channels for `async` code, and the runtime on which all of them are measured.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

/// The message of a call that cannot fail.
const OPEN: &str = "both sides live as long as the measurement";

/// A channel of `u64` between two tasks.
pub trait TaskChannel: 'static {
    /// Its public name.
    const NAME: &'static str;
    /// The sending side.
    type Sender: Send + 'static;
    /// The receiving side.
    type Receiver: Send + 'static;

    /// A new channel that accepts at most `capacity` messages.
    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver);

    /// Sends a message; waits while the channel is full.
    fn send(sender: &mut Self::Sender, message: u64) -> impl Future<Output = ()> + Send;

    /// Receives a message; waits while the channel is empty.
    fn receive(receiver: &mut Self::Receiver) -> impl Future<Output = u64> + Send;
}

macro_rules! task_channel {
    ($subject:ident, $name:literal, $senders:ty, $receivers:ty, $new:expr,
     |$sender:ident, $message:ident| $send:expr, |$receiver:ident| $receive:expr) => {
        #[doc = concat!("`", $name, "`, between tasks.")]
        #[derive(Debug)]
        pub struct $subject;

        impl TaskChannel for $subject {
            const NAME: &'static str = $name;
            type Sender = $senders;
            type Receiver = $receivers;

            fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
                $new(capacity)
            }

            #[inline]
            async fn send($sender: &mut Self::Sender, $message: u64) {
                $send.await.expect(OPEN);
            }

            #[inline]
            async fn receive($receiver: &mut Self::Receiver) -> u64 {
                $receive.await.expect(OPEN)
            }
        }
    };
}

task_channel!(
    TokioTasks,
    "tokio",
    mpsc::Sender<u64>,
    mpsc::Receiver<u64>,
    mpsc::channel,
    |sender, message| sender.send(message),
    |receiver| receiver.recv()
);
task_channel!(
    AsyncChannelTasks,
    "async-channel",
    async_channel::Sender<u64>,
    async_channel::Receiver<u64>,
    async_channel::bounded,
    |sender, message| sender.send(message),
    |receiver| receiver.recv()
);
task_channel!(
    FlumeTasks,
    "flume",
    flume::Sender<u64>,
    flume::Receiver<u64>,
    flume::bounded,
    |sender, message| sender.send_async(message),
    |receiver| receiver.recv_async()
);
task_channel!(
    KanalTasks,
    "kanal",
    kanal::AsyncSender<u64>,
    kanal::AsyncReceiver<u64>,
    kanal::bounded_async,
    |sender, message| sender.send(message),
    |receiver| receiver.recv()
);

/// The runtime for a cell: only the current thread if `workers` is 0, else that many threads.
///
/// # Errors
/// The operating system cannot start a thread.
pub fn runtime(workers: usize) -> io::Result<Runtime> {
    if workers == 0 {
        Builder::new_current_thread().build()
    } else {
        Builder::new_multi_thread().worker_threads(workers).build()
    }
}

/// Runs two tasks to completion on `runtime`. Both are spawned, because on a multi-threaded runtime
/// the thread of the main future is not a worker.
pub fn run_both<A, B>(
    runtime: &Runtime,
    first: impl Future<Output = A> + Send + 'static,
    second: impl Future<Output = B> + Send + 'static,
) -> (A, B)
where
    A: Send + 'static,
    B: Send + 'static,
{
    const ENDS: &str = "a task that panics has failed its checks";
    runtime.block_on(async {
        let first = tokio::spawn(first);
        let second = tokio::spawn(second);
        (first.await.expect(ENDS), second.await.expect(ENDS))
    })
}
