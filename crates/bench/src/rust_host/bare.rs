//! Two hand-offs through eventfds and nothing else: the baseline of a call between two threads.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};

use crate::problem::Problem;

/// A request with this in it ends the thread.
const END: u64 = 1 << 32;

/// The thread that answers.
#[derive(Debug)]
pub struct Bare {
    request: Arc<OwnedFd>,
    reply: Arc<OwnedFd>,
    thread: JoinHandle<Result<(), Errno>>,
}

impl Bare {
    /// Starts it.
    ///
    /// # Errors
    /// No descriptor or no thread is to be had.
    pub fn start() -> Result<Self, Problem> {
        let open = || {
            eventfd(0, EventfdFlags::CLOEXEC)
                .map(Arc::new)
                .map_err(refused)
        };
        let (request, reply) = (open()?, open()?);
        let (asked, answered) = (Arc::clone(&request), Arc::clone(&reply));
        let thread = std::thread::Builder::new()
            .name("bare".to_owned())
            .spawn(move || {
                while wait(&asked)? < END {
                    post(&answered, 1)?;
                }
                Ok(())
            })
            .map_err(Problem::io("cannot start the bare thread"))?;
        Ok(Self {
            request,
            reply,
            thread,
        })
    }

    /// One request, one reply.
    ///
    /// # Errors
    /// The kernel's.
    pub fn call(&self) -> Result<(), Problem> {
        post(&self.request, 1)
            .and_then(|()| wait(&self.reply))
            .map(|_| ())
            .map_err(refused)
    }

    /// Ends the thread.
    ///
    /// # Errors
    /// It had ended before, by an error.
    pub fn stop(self) -> Result<(), Problem> {
        post(&self.request, END).map_err(refused)?;
        let ended = self.thread.join();
        ended
            .map_err(|_| Problem::Host("the bare thread panicked".to_owned()))?
            .map_err(refused)
    }
}

fn post(to: impl AsFd, value: u64) -> Result<(), Errno> {
    write(to, &value.to_ne_bytes()).map(|_| ())
}

fn wait(on: impl AsFd) -> Result<u64, Errno> {
    let mut value = [0; 8];
    read(on, &mut value)?;
    Ok(u64::from_ne_bytes(value))
}

fn refused(errno: Errno) -> Problem {
    Problem::Io("eventfd".to_owned(), errno.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_answered_and_the_thread_ends() {
        let bare = Bare::start().unwrap();
        for _ in 0..100 {
            bare.call().unwrap();
        }
        bare.stop().unwrap();
    }
}
