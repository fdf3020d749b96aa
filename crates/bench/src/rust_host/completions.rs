//! Many calls: submitted and reaped in turns, and reaped once all completions are ready.

use std::sync::Arc;
use std::time::Instant;

use thalweg::port::{Instance, Port};
use thalweg::wire::message;
use thalweg_lab::LabService;
use thalweg_lab::lab::LabServer;
use thalweg_queue::clock;

use super::block::answer;
use super::failed;
use super::reading::Reading;
use crate::problem::Problem;

/// Maximum number of calls in flight; a drain also waits for this many completions. As in
/// `hosts/c/completions.h`.
const WINDOW: u64 = 2048;
/// Calls that are submitted before completions are looked at.
const AT_ONCE: u64 = 64;
/// Completions that are reaped before calls are submitted.
const REAPED: usize = 256;

/// The service, and a port for its completions.
pub struct Calls {
    instance: Arc<Instance>,
    port: Arc<Port>,
    args: Vec<u8>,
}

impl Calls {
    /// Opens both.
    ///
    /// # Errors
    /// No runtime, no descriptor.
    pub fn open() -> Result<Self, Problem> {
        let runtime = Instance::runtime().map_err(failed)?;
        let instance = Instance::open(|| LabServer::new(LabService::default()), runtime);
        let layout = instance.package().methods[0].params;
        Ok(Self {
            instance,
            port: Port::open(WINDOW as u32).map_err(failed)?,
            args: message::encode(&(), layout, Vec::new()).expect("it is small"),
        })
    }

    fn submit(&self, token: u64) -> Result<(), Problem> {
        self.instance
            .submit(&self.port, token, 0, &self.args, u64::MAX)
            .map(drop)
            .map_err(failed)
    }

    fn reap(&self, read: &mut Reading) -> Result<(), Problem> {
        let before = read.records;
        for completed in self.port.reap().map_err(failed)? {
            if completed.code != thalweg::Code::Ok {
                return Err(Problem::Check("a call failed".to_owned()));
            }
            read.checksum += completed.token;
            read.records += 1;
        }
        if read.records == before {
            self.port.wait(u64::MAX).map_err(failed)?;
        }
        Ok(())
    }

    /// `count` calls from the first submission to the last completion.
    pub fn complete(&self, count: u64) -> Result<String, Problem> {
        let mut read = Reading::default();
        let mut submitted = 0;
        let began = Instant::now();
        while read.records < count {
            let room = WINDOW - (submitted - read.records);
            if room >= AT_ONCE && submitted < count {
                for _ in 0..AT_ONCE.min(count - submitted) {
                    self.submit(submitted)?;
                    submitted += 1;
                }
            } else {
                self.reap(&mut read)?;
            }
        }
        read.spent = began.elapsed();
        Ok(read.answer())
    }

    /// Makes `count` calls at a rate of `per_s` a second. Measures for each call, in ns, how long
    /// after its due time its completion is reaped. Between submissions the host waits for
    /// completions until the next call is due. A call that cannot be submitted in time counts as
    /// late.
    pub fn paced(&self, count: u64, per_s: u64) -> Result<String, Problem> {
        let began = clock::now();
        let due_at = |token: u64| began + token * 1_000_000_000 / per_s;
        let mut latencies = vec![0; count as usize];
        let (mut submitted, mut ended) = (0, 0);
        while ended < count {
            let due = (clock::now() - began) * per_s / 1_000_000_000 + 1;
            let due = due.min(count).min(ended + WINDOW).min(submitted + AT_ONCE);
            let (first, before) = (submitted, ended);
            while submitted < due {
                self.submit(submitted)?;
                submitted += 1;
            }
            for completed in self.port.reap().map_err(failed)?.take(REAPED) {
                if completed.code != thalweg::Code::Ok {
                    return Err(Problem::Check("a call failed".to_owned()));
                }
                latencies[completed.token as usize] = clock::now() - due_at(completed.token);
                ended += 1;
            }
            if ended == before && submitted == first && submitted > ended {
                let next = if submitted < count {
                    due_at(submitted)
                } else {
                    u64::MAX
                };
                match self.port.wait(next) {
                    Err(failure) if failure.code != thalweg::Code::TimedOut => {
                        return Err(failed(failure));
                    }
                    _ => {}
                }
            }
        }
        Ok(answer(&latencies))
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.instance.close();
    }
}
