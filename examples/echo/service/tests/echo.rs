//! Behaviour that the host programs do not test.

use std::time::{Duration, Instant};

use thalweg::{CallError, Code};
use thalweg_echo::EchoService;
use thalweg_echo::echo::{EchoClient, Request, TimerClient, TimerError};

fn timer() -> (EchoClient, TimerClient) {
    let client = EchoClient::start(|| EchoService).unwrap();
    let timer = client.timer("test").wait().unwrap();
    (client, timer)
}

fn refused<T: std::fmt::Debug>(result: Result<T, CallError<TimerError>>) -> TimerError {
    match result {
        Err(CallError::Service(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_own_error() {
    let (client, timer) = timer();
    assert_eq!(refused(client.timer("").wait()), TimerError::NoName);
    assert_eq!(refused(timer.schedule(0, 1).wait()), TimerError::TooShort);
    let error = refused(timer.schedule(u32::MAX, 1).wait());
    assert_eq!(error, TimerError::TooLong(u32::MAX));
}

#[test]
fn no_tick_is_early_or_lost() {
    let (_client, timer) = timer();
    let began = Instant::now();
    let ticks: Vec<_> = timer.schedule(1, 50).wait().unwrap().collect();
    assert!(began.elapsed() >= Duration::from_millis(50));
    let numbers = ticks.into_iter().map(|tick| tick.unwrap().number);
    assert_eq!(numbers.collect::<Vec<_>>(), (1..=50).collect::<Vec<_>>());
}

#[test]
fn a_timer_without_end_fires_until_its_stream_is_closed() {
    let (client, timer) = timer();
    let mut ticks = timer.schedule(1, 0).wait().unwrap();
    for number in 1..=10 {
        assert_eq!(ticks.next().unwrap().unwrap().number, number);
    }
    drop(ticks);
    assert_eq!(client.version().wait().unwrap(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn who_asks_for_an_answer_in_an_hour_keeps_nobody_waiting() {
    let (_client, timer) = timer();
    let request = |delay_ms| Request {
        message: "hello".to_owned(),
        delay_ms,
    };
    let late = timer.echo(&request(60 * 60 * 1_000));
    for _ in 0..100 {
        assert_eq!(timer.echo(&request(0)).wait().unwrap().message, "hello");
    }
    late.cancel();
    match late.wait() {
        Err(CallError::Ended(failure)) => assert_eq!(failure.code, Code::Cancelled),
        other => panic!("not cancelled: {other:?}"),
    }
}
