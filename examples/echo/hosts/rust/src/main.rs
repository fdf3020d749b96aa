//! Calls the echo service from Rust: the one in Rust, or a guest in another language, whose address is the
//! argument. It prints the same lines as the hosts in C and Python.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use thalweg::guest::OpenGuest;
use thalweg::{CallError, Code};
use thalweg_echo::EchoService;
use thalweg_echo::echo::{ComplexRequest, EchoClient, Request, TimerError};

const HOUR: u32 = 60 * 60 * 1_000;

fn main() -> ExitCode {
    match show() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo-rust: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show() -> Result<(), Box<dyn Error>> {
    let client = match std::env::args().nth(1) {
        None => EchoClient::start(|| EchoService)?,
        Some(address) => EchoClient::open(&address)?,
    };
    let version = client.version().wait()?;
    println!("version {version}");

    let timer = client.timer("clock").wait()?;
    let request = |message: &str, delay_ms| Request {
        message: message.to_owned(),
        delay_ms,
    };
    // Both calls run concurrently.
    let later = timer.echo(&request("later", 50));
    let sooner = timer.echo(&request("sooner", 0));
    for pending in [sooner, later] {
        let response = pending.wait()?;
        println!("{} said {}", response.name, response.message);
    }

    let complex = timer.complex(&ComplexRequest {
        messages: vec![request("one", 10), request("two", 20)],
        tags: vec!["fast".to_owned(), "async".to_owned()],
        note: Some("an extra".to_owned()),
        retries: Some(3),
    });
    let complex = complex.wait()?;
    println!("{} ({})", complex.summary, complex.item_count);

    for tick in timer.schedule(5, 3).wait()? {
        println!("tick {}", tick?.number);
    }

    // A typed error of the service.
    match timer.echo(&request("never", HOUR + 1)).wait() {
        Err(CallError::Service(TimerError::TooLong(ms))) => println!("refused: {ms} ms"),
        other => println!("not refused: {other:?}"),
    }
    // At the caller's deadline, the service also stops its work for the call.
    let hurried = timer.with_timeout(Duration::from_millis(20));
    match hurried.echo(&request("in an hour", HOUR)).wait() {
        Err(CallError::Ended(failure)) if failure.code == Code::TimedOut => println!("timed out"),
        other => println!("not timed out: {other:?}"),
    }

    Ok(())
}
