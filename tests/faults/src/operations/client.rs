//! The client in Rust.

use thalweg::port::{NoError, Pending};
use thalweg::{CallError, Client, StreamReader};

use super::table::{complete, global};
use super::{Problem, Step};
use crate::fault::{during, during_on};
use crate::service::{ECHO, LATER, Lab, Record, SCAN};

fn ended(why: CallError<NoError>) -> Problem {
    match why {
        CallError::Ended(failure) => failure.into(),
        other => Problem::violation(format!("{other:?}")),
    }
}

fn call_of(client: &Client, method: u32) -> Result<(), Problem> {
    let bytes = [7u8; 64].as_slice();
    let call: Pending<Vec<u8>, NoError> = client.call(method, &(bytes,), |reply| reply.value());
    match call.wait() {
        Ok(answer) if answer == bytes => Ok(()),
        Ok(_) => Err(Problem::violation("the answer is another one")),
        Err(why) => Err(ended(why)),
    }
}

fn started() -> Client {
    Client::start(|| Lab).expect("nothing is refused yet")
}

pub(super) fn open() -> Step {
    Box::new(|| {
        during(|| {
            let client = Client::start(|| Lab)?;
            call_of(&client, ECHO)
        })
    })
}

pub(super) fn call() -> Step {
    let runtime = global();
    Box::new(move || {
        let client = started();
        during_on(&runtime, || {
            call_of(&client, ECHO)?;
            call_of(&client, LATER)
        })
    })
}

pub(super) fn stream() -> Step {
    let runtime = global();
    Box::new(move || {
        let client = started();
        during_on(&runtime, || {
            let call: Pending<StreamReader<Record>, NoError> =
                client.call(SCAN, &(200u64, 100u64), |reply| reply.stream());
            let mut reader = call.wait().map_err(ended)?;
            let mut count = 0;
            while let Some(batch) = reader.next_batch(64, u64::MAX)? {
                count += u64::from(batch.len()) + batch.lost_before();
            }
            complete(count)
        })
    })
}
