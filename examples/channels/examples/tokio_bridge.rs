//! tokio tasks and a blocking thread on the two sides of the same channels.
//!
//! Tasks ask how many lines a file has. The thread reads one file after another with blocking
//! calls, like a library without async support. It answers through a `oneshot`, and reports its
//! progress to another task.
//!
//! It asserts that each task gets its own answer, and that a receive that timed out has received
//! nothing.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io, thread};

use thalweg::channel::{TryRecvError, mpsc, oneshot, spsc};
use thalweg_example_channels::grouped;

/// Less than the number of tasks: some tasks wait for capacity, while their thread runs the others.
const CAPACITY: usize = 2;

struct Question {
    path: PathBuf,
    answer: oneshot::Sender<io::Result<u64>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let paths = sources()?;
    println!("{} tasks ask one blocking thread:\n", paths.len());
    let (questions, asked) = mpsc::channel(CAPACITY)?;
    let (progress, heard) = spsc::channel(CAPACITY)?;
    let reader = thread::spawn(move || read(&asked, &progress));

    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let (lines, reports) = tokio.block_on(async {
        // There is no question yet, so this times out. It receives nothing.
        let early = tokio::time::timeout(Duration::from_millis(10), heard.recv_async()).await;
        assert!(
            early.is_err(),
            "there is progress before the first question"
        );

        let reports = tokio::spawn(listen(heard));
        let tasks: Vec<_> = paths
            .iter()
            .map(|path| tokio::spawn(ask(path.clone(), questions.clone())))
            .collect();
        drop(questions); // Only the tasks have senders now.
        let mut lines = Vec::new();
        for task in tasks {
            lines.push(task.await??);
        }
        Ok::<_, Box<dyn Error>>((lines, reports.await?))
    })?;
    reader.join().expect("the reader does not panic");

    let longest = (0..paths.len())
        .max_by_key(|place| lines[*place])
        .expect("there are files");
    println!(
        "  lines    {:>6} in {} files",
        grouped(lines.iter().sum()),
        paths.len()
    );
    println!(
        "  longest  {:>6} in {}",
        grouped(lines[longest]),
        paths[longest].file_name().expect("a file").display()
    );
    println!(
        "  reports  {:>6} of how far it was",
        grouped(reports.len() as u64)
    );

    for (path, lines) in paths.iter().zip(&lines) {
        assert_eq!(*lines, count(path)?, "{}", path.display());
    }
    assert_eq!(reports, (1..=paths.len()).collect::<Vec<_>>());
    println!("\nEach task has the answer to its own question.");
    Ok(())
}

/// A task: waits for capacity, then for the answer.
async fn ask(path: PathBuf, mut questions: mpsc::Sender<Question>) -> io::Result<u64> {
    let (answer, answered) = oneshot::channel();
    let question = Question { path, answer };
    questions
        .send_async_mut(question)
        .await
        .map_err(|_| io::Error::other("the reader is gone"))?;
    answered
        .await
        .map_err(|_| io::Error::other("the reader left without an answer"))?
}

/// A task: collects the progress reports until the thread has ended.
async fn listen(mut heard: spsc::Receiver<usize>) -> Vec<usize> {
    let mut reports = Vec::new();
    while let Ok(done) = heard.recv_async_mut().await {
        reports.push(done);
    }
    assert_eq!(heard.try_recv(), Err(TryRecvError::Closed));
    reports
}

/// The thread: ends when all senders of questions are dropped.
fn read(asked: &mpsc::Receiver<Question>, progress: &spsc::Sender<usize>) {
    for (done, question) in asked.iter().enumerate() {
        // The asking task may have given up; then the answer is dropped.
        let _ = question.answer.send(count(&question.path));
        progress
            .send(done + 1)
            .expect("the listener stays until the end");
    }
}

fn count(path: &Path) -> io::Result<u64> {
    Ok(fs::read(path)?
        .iter()
        .filter(|byte| **byte == b'\n')
        .count() as u64)
}

/// The source files of the channels.
fn sources() -> io::Result<Vec<PathBuf>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/queue/src");
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
