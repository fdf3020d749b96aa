//! The path of a call and its outcomes, with a service written without a generator.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use thalweg_port::{
    CallError, Code, Completion, Instance, NoError, Object, Port, close_handle, find,
};
use thalweg_queue::clock;
use thalweg_runtime::{native, wait};
use thalweg_wire::Handle;

use crate::lab;
use crate::lab::{Boom, Lab, client};

fn code<T: std::fmt::Debug, E: std::fmt::Debug>(result: Result<T, CallError<E>>) -> Code {
    match result.unwrap_err() {
        CallError::Ended(failure) => failure.code,
        CallError::Service(error) => panic!("a service error: {error:?}"),
    }
}

#[test]
fn call_returns_the_answer_of_the_service() {
    assert_eq!(lab::shout(&client(), "quiet").wait().unwrap(), "QUIET");
}

#[test]
fn call_with_a_typed_error_returns_it_typed() {
    let error = lab::fail(&client(), "because").wait().unwrap_err();
    assert_eq!(error, CallError::Service("because".to_owned()));
}

#[test]
fn panic_ends_its_call_and_the_next_call_gets_a_fresh_instance() {
    let client = client();
    assert_eq!(lab::count_up(&client).wait().unwrap(), 1);
    assert_eq!(lab::count_up(&client).wait().unwrap(), 2);
    let error = lab::panic(&client, Boom::AtOnce).wait().unwrap_err();
    match error {
        CallError::Ended(failure) => {
            assert_eq!(failure.code, Code::GuestPanicked);
            assert_eq!(failure.message, "at once, on purpose");
        }
        CallError::Service(_) => unreachable!(),
    }
    assert_eq!(lab::count_up(&client).wait().unwrap(), 1);
}

#[test]
fn panic_in_a_task_ends_its_call() {
    let client = client();
    lab::count_up(&client).wait().unwrap();
    assert_eq!(
        code(lab::panic(&client, Boom::InTask).wait()),
        Code::GuestPanicked
    );
    assert_eq!(lab::count_up(&client).wait().unwrap(), 1);
}

#[test]
fn panicking_service_constructor_ends_the_call_as_guest_lost() {
    let client = thalweg_port::Client::start(|| -> Lab { panic!("no lab, on purpose") }).unwrap();
    assert_eq!(code(lab::shout(&client, "x").wait()), Code::GuestLost);
    assert_eq!(code(lab::shout(&client, "x").wait()), Code::GuestLost);
}

#[test]
fn call_dropped_by_the_service_ends_as_guest_lost() {
    assert_eq!(code(lab::forget(&client()).wait()), Code::GuestLost);
}

#[test]
fn deadline_ends_a_call_whose_service_does_not_check() {
    let (client, seen) = lab::seen();
    let client = client.with_timeout(Duration::from_millis(20));
    assert_eq!(
        code(lab::sleep(&client, lab::FOR_EVER).wait()),
        Code::TimedOut
    );
    seen.wakes.store(true, Ordering::SeqCst);
}

#[test]
fn past_deadline_ends_a_call_before_the_service_gets_it() {
    let client = client();
    let late = client.with_timeout(Duration::ZERO);
    assert_eq!(code(lab::count_up(&late).wait()), Code::TimedOut);
    assert_eq!(lab::count_up(&client).wait().unwrap(), 1);
}

#[test]
fn answer_after_a_stop_request_does_not_replace_the_cancelled_outcome() {
    let client = client();
    for _ in 0..if cfg!(miri) { 20 } else { 2_000 } {
        let call = lab::until_stopped(&client);
        call.cancel();
        assert_eq!(code(call.wait()), Code::Cancelled);
    }
}

#[test]
fn cancelled_call_ends_and_its_task_notices() {
    let (client, seen) = lab::seen();
    let pending = lab::until_stopped(&client);
    // Before a worker runs the task, there is no task that could notice the deadline.
    lab::wait_until(&seen.begun, 1);
    pending.cancel();
    assert_eq!(code(pending.wait()), Code::Cancelled);
    lab::wait_until(&seen.stopped, 1);
}

/// On a thread and in an actor.
#[test]
fn wait_timeout_before_the_end_returns_none_and_the_call_continues() {
    /// Yields to other actors of the caller's worker until the count is reached.
    fn until(count: &AtomicU32, least: u32) {
        while count.load(Ordering::SeqCst) < least {
            wait::yield_now();
        }
    }
    fn test() {
        let (client, seen) = lab::seen();
        let mut call = lab::until_stopped(&client);
        until(&seen.begun, 1);
        assert!(call.wait_timeout(Duration::ZERO).is_none());
        assert!(call.wait_timeout(Duration::from_millis(1)).is_none());
        assert_eq!(seen.stopped.load(Ordering::SeqCst), 0, "the call continues");
        call.cancel();
        let result = call.wait_timeout(Duration::MAX);
        assert_eq!(result.map(code), Some(Code::Cancelled));
        let result = call.wait_timeout(Duration::MAX);
        assert_eq!(
            result.map(code),
            Some(Code::Argument),
            "the handle was already taken"
        );

        // Afterwards you can wait for it, or drop it, which cancels it.
        let mut call = lab::until_stopped(&client);
        until(&seen.begun, 2);
        assert!(call.wait_timeout(Duration::ZERO).is_none());
        call.cancel();
        assert_eq!(code(call.wait()), Code::Cancelled);
        let mut call = lab::until_stopped(&client);
        until(&seen.begun, 3);
        assert!(call.wait_timeout(Duration::ZERO).is_none());
        drop(call);
        until(&seen.stopped, 3);
    }
    test();
    Instance::runtime().unwrap().spawn(test).join().unwrap();
}

#[test]
fn tasks_run_concurrently_and_the_service_serves_further_calls() {
    let client = client();
    let slow = lab::until_stopped(&client);
    assert_eq!(
        lab::shout(&client, "still here").wait().unwrap(),
        "STILL HERE"
    );
    drop(slow);
}

#[test]
fn resource_is_usable_until_it_is_dropped() {
    let client = client();
    let counter = lab::new_counter(&client, 40).wait().unwrap();
    assert_eq!(lab::add(&client, counter.handle(), 2).wait().unwrap(), 42);
    let handle = counter.handle();
    drop(counter);
    assert_eq!(code(lab::add(&client, handle, 1).wait()), Code::Stale);
}

#[test]
fn resource_with_two_clients_is_closed_with_the_last() {
    let client = client();
    let counter = lab::new_counter(&client, 40).wait().unwrap();
    let again = counter.clone();
    drop(counter);
    let handle = again.handle();
    assert_eq!(lab::add(&client, handle, 2).wait().unwrap(), 42);
    // One of the clones transfers the resource, once.
    let third = again.clone();
    assert_eq!(again.into_handle(), handle);
    assert_eq!(third.into_handle(), Handle(0));
    assert_eq!(lab::add(&client, handle, 1).wait().unwrap(), 43);
}

#[test]
fn resource_from_before_a_panic_is_stale() {
    let client = client();
    let counter = lab::new_counter(&client, 1).wait().unwrap();
    lab::panic(&client, Boom::AtOnce).wait().unwrap_err();
    assert_eq!(
        code(lab::add(&client, counter.handle(), 1).wait()),
        Code::Stale
    );
}

#[test]
fn panicking_resource_destructor_does_not_affect_the_host() {
    let (client, seen) = lab::seen();
    for ups in 1..=2 {
        assert_eq!(lab::count_up(&client).wait().unwrap(), ups);
    }
    let counter = lab::new_counter(&client, lab::UNLUCKY).wait().unwrap();
    let handle = counter.into_handle();
    assert_eq!(close_handle(handle.0), Ok(()));
    // A resource that was dropped before a call is gone when that call is served, so the call gets
    // a fresh service.
    assert_eq!(lab::count_up(&client).wait().unwrap(), 1);
    // The same for a resource in a result that is not read.
    drop(lab::new_counter(&client, lab::UNLUCKY));
    drop(lab::new_counter(&client, 1).wait().unwrap());
    lab::count_up(&client).wait().unwrap();
    client.close();
    let threads = seen.dropped_by.lock().unwrap();
    assert!(threads.len() >= 2);
    assert!(
        threads.iter().all(|name| name.starts_with("tw-")),
        "{threads:?}"
    );
}

#[test]
fn resource_of_another_client_is_refused() {
    let counter_of = client();
    let counter = lab::new_counter(&counter_of, 1).wait().unwrap();
    assert_eq!(
        code(lab::add(&client(), counter.handle(), 1).wait()),
        Code::Argument
    );
}

#[test]
fn call_awaited_on_a_foreign_executor_resolves() {
    assert_eq!(
        lab::block_on(lab::shout(&client(), "await")).unwrap(),
        "AWAIT"
    );
}

#[test]
fn call_made_in_an_actor_does_not_block_its_worker() {
    let client = client();
    let (tx, rx) = std::sync::mpsc::channel();
    // More waiting actors than workers: if they blocked their workers, this test would never end.
    for _ in 0..16 {
        let (client, tx) = (client.clone(), tx.clone());
        Instance::runtime()
            .unwrap()
            .spawn(move || tx.send(lab::shout(&client, "a").wait().unwrap()).unwrap());
    }
    for _ in 0..16 {
        assert_eq!(rx.recv().unwrap(), "A");
    }
}

#[test]
fn call_waited_for_in_native_code_is_cancelled_as_would_park() {
    let (client, seen) = lab::seen();
    let its = Arc::clone(&seen);
    let actor = Instance::runtime().unwrap().spawn(move || {
        let call = lab::until_stopped(&client);
        while its.begun.load(Ordering::SeqCst) == 0 {
            wait::yield_now();
        }
        let refused = native(|| call.wait());
        // Here it may wait.
        let waits = lab::shout(&client, "again").wait().unwrap();
        (code(refused), waits)
    });
    assert_eq!(actor.join().unwrap(), (Code::WouldPark, "AGAIN".to_owned()));
    lab::wait_until(&seen.stopped, 1);
}

// ---- Ports

#[test]
fn port_wait_in_native_code_is_would_park() {
    let port = Port::open(4).unwrap();
    let theirs = Arc::clone(&port);
    let actor = Instance::runtime()
        .unwrap()
        .spawn(move || native(|| theirs.wait(u64::MAX)).unwrap_err().code);
    assert_eq!(actor.join().unwrap(), Code::WouldPark);
    // No call is left.
    instance()
        .submit(&port, 7, 0, &shout_args("x"), u64::MAX)
        .unwrap();
    port.wait(u64::MAX).unwrap();
    assert_eq!(next(&port).token, 7);
}

fn instance() -> Arc<Instance> {
    Instance::open(Lab::default, Instance::runtime().unwrap())
}

/// The next completion of a port.
fn next(port: &Port) -> Completion {
    port.reap().unwrap().next().unwrap()
}

fn shout_args(text: &str) -> Vec<u8> {
    lab::encode(0, &(text,))
}

#[test]
fn port_completes_each_submission_once_with_its_token() {
    let (instance, port) = (instance(), Port::open(64).unwrap());
    for token in 0..64 {
        instance
            .submit(&port, token, 0, &shout_args("x"), u64::MAX)
            .unwrap();
    }
    let mut seen = [false; 64];
    for _ in 0..64 {
        port.wait(u64::MAX).unwrap();
        let done = next(&port);
        assert_eq!(done.code, Code::Ok);
        assert!(!std::mem::replace(&mut seen[done.token as usize], true));
    }
    assert!(port.reap().unwrap().next().is_none());
    assert_eq!(port.wait(0).unwrap_err().code, Code::TimedOut);
    instance.close();
}

#[test]
fn full_port_is_overloaded_until_it_is_reaped() {
    let (instance, port) = (instance(), Port::open(2).unwrap());
    let submit = |token| instance.submit(&port, token, 0, &shout_args("x"), u64::MAX);
    submit(1).unwrap();
    submit(2).unwrap();
    assert_eq!(submit(3).unwrap_err().code, Code::Overloaded);
    port.wait(u64::MAX).unwrap();
    drop(next(&port));
    submit(3).unwrap();
    instance.close();
}

#[test]
fn fill_stops_at_the_last_available_completion() {
    let (instance, port) = (instance(), Port::open(5).unwrap());
    for round in [0, 5] {
        // In the second round, all slots of the port are free again.
        for token in round..round + 5 {
            instance
                .submit(&port, token, 0, &shout_args("x"), u64::MAX)
                .unwrap();
        }
        let mut seen = Vec::new();
        while seen.len() < 5 {
            port.wait(u64::MAX).unwrap();
            let mut places = [const { None }; 3];
            port.reap().unwrap().fill(&mut places);
            let filled = places.iter().take_while(|place| place.is_some()).count();
            let tokens: Vec<u64> = places.iter().flatten().map(|done| done.token).collect();
            assert!(
                filled > 0 && filled == tokens.len(),
                "the completions fill the slice from the beginning"
            );
            seen.extend(tokens);
        }
        assert_eq!(seen, (round..round + 5).collect::<Vec<_>>());
    }
    let mut nothing = [const { None }; 3];
    port.reap().unwrap().fill(&mut nothing);
    assert!(nothing.iter().all(Option::is_none));
    instance.close();
}

#[test]
fn reap_while_another_thread_reaps_is_refused() {
    let (instance, port) = (instance(), Port::open(4).unwrap());
    for token in [1, 2] {
        instance
            .submit(&port, token, 0, &shout_args("x"), u64::MAX)
            .unwrap();
        port.wait(u64::MAX).unwrap();
    }
    let mut reaping = port.reap().unwrap();
    assert_eq!(reaping.next().unwrap().token, 1);
    let refused = std::thread::scope(|scope| {
        let other = scope.spawn(|| port.reap().map(Iterator::count));
        other.join().unwrap().unwrap_err().code
    });
    assert_eq!(refused, Code::Argument);
    drop(reaping);
    port.wait(u64::MAX).unwrap();
    assert_eq!(next(&port).token, 2);
    instance.close();
}

#[test]
fn port_close_ends_its_calls_and_wakes_the_waiting_thread() {
    let (instance, port) = (instance(), Port::open(2).unwrap());
    let handle = instance
        .submit(
            &port,
            1,
            lab::UNTIL_STOPPED,
            &lab::encode(lab::UNTIL_STOPPED, &()),
            u64::MAX,
        )
        .unwrap();
    assert!(matches!(find(handle), Ok(Object::Call(_))));
    let waiter = std::thread::spawn({
        let port = Arc::clone(&port);
        move || port.wait(u64::MAX)
    });
    std::thread::sleep(Duration::from_millis(20));
    port.close();
    assert_eq!(waiter.join().unwrap().unwrap_err().code, Code::Closed);
    assert_eq!(find(handle).unwrap_err().code, Code::Stale);
    assert_eq!(
        instance
            .submit(&port, 1, 0, &shout_args("x"), u64::MAX)
            .unwrap_err()
            .code,
        Code::Closed
    );
    instance.close();
}

#[test]
fn client_close_cancels_its_calls() {
    let (instance, port) = (instance(), Port::open(4).unwrap());
    let args = lab::encode(lab::UNTIL_STOPPED, &());
    instance
        .submit(&port, 7, lab::UNTIL_STOPPED, &args, u64::MAX)
        .unwrap();
    instance.close();
    port.wait(u64::MAX).unwrap();
    let done = next(&port);
    assert_eq!((done.token, done.code), (7, Code::Cancelled));
    let refused = instance.submit(&port, 8, 0, &shout_args("x"), u64::MAX);
    assert_eq!(refused.unwrap_err().code, Code::Closed);
}

#[test]
fn armed_port_becomes_readable_at_a_completion() {
    use std::os::fd::AsRawFd;
    let (instance, port) = (instance(), Port::open(4).unwrap());
    for _ in 0..3 {
        assert!(!port.arm().unwrap());
        instance
            .submit(&port, 1, 0, &shout_args("x"), u64::MAX)
            .unwrap();
        let mut poll = libc::pollfd {
            fd: port.fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one pollfd, which this function owns.
        assert_eq!(unsafe { libc::poll(&mut poll, 1, 20_000) }, 1);
        assert!(port.arm().unwrap(), "a completion is available");
        drop(next(&port));
    }
    instance.close();
}

#[test]
fn handle_of_an_ended_call_is_not_reused_by_the_next_call() {
    let (instance, port) = (instance(), Port::open(4).unwrap());
    let wait = lab::encode(lab::UNTIL_STOPPED, &());
    let mut seen = Vec::new();
    for token in 0..100 {
        let call = instance
            .submit(&port, token, lab::UNTIL_STOPPED, &wait, u64::MAX)
            .unwrap();
        // The lower half shows whether the call has the same memory, which is likely.
        for old in &seen {
            assert_eq!(find(*old).unwrap_err().code, Code::Stale);
            assert_eq!(close_handle(*old).unwrap_err().code, Code::Stale);
        }
        assert!(matches!(find(call), Ok(Object::Call(_))));
        close_handle(call).unwrap();
        port.wait(u64::MAX).unwrap();
        let done = next(&port);
        assert_eq!(
            (done.token, done.code, done.handle),
            (token, Code::Cancelled, call)
        );
        seen.push(call);
    }
    instance.close();
}

#[test]
fn client_with_several_ports_each_port_ends_only_its_own_calls() {
    let instance = instance();
    let wait = lab::encode(lab::UNTIL_STOPPED, &());
    for _ in 0..20 {
        let ports = [Port::open(4).unwrap(), Port::open(4).unwrap()];
        for port in &ports {
            for token in 0..2 {
                instance
                    .submit(port, token, lab::UNTIL_STOPPED, &wait, u64::MAX)
                    .unwrap();
            }
        }
        ports[0].close();
        assert!(ports[1].is_empty(), "the calls of the other port continue");
        instance
            .submit(&ports[1], 7, 0, &shout_args("x"), u64::MAX)
            .unwrap();
        ports[1].wait(u64::MAX).unwrap();
        assert_eq!(next(&ports[1]).token, 7);
        ports[1].close();
    }
    instance.close();
}

#[test]
fn malformed_arguments_and_unknown_methods_are_refused() {
    let (instance, port) = (instance(), Port::open(4).unwrap());
    let unknown = instance.submit(&port, 1, 999, &shout_args("x"), u64::MAX);
    assert_eq!(unknown.unwrap_err().code, Code::Argument);
    let mut cut = shout_args("something");
    cut.truncate(cut.len() - 2);
    for bad in [
        Vec::new(),
        vec![0; 16],
        cut,
        lab::encode(lab::UNTIL_STOPPED, &()),
    ] {
        instance.submit(&port, 1, 0, &bad, u64::MAX).unwrap();
        port.wait(u64::MAX).unwrap();
        assert_eq!(next(&port).code, Code::Argument);
    }
    instance.close();
}

#[test]
fn unread_result_closes_its_handles() {
    let (instance, port) = (instance(), Port::open(4).unwrap());
    let args = lab::encode(lab::NEW_COUNTER, &(1u64,));
    instance
        .submit(&port, 1, lab::NEW_COUNTER, &args, u64::MAX)
        .unwrap();
    port.wait(u64::MAX).unwrap();
    let mut done = next(&port);
    let handle = done.take(0).unwrap();
    assert_eq!(done.take(0).unwrap_err().code, Code::Argument);
    assert_eq!(done.take(1).unwrap_err().code, Code::Argument);
    assert!(find(handle).is_ok());
    drop(done);
    assert!(find(handle).is_ok(), "the taker owns taken handles");
    close_handle(handle).unwrap();
    let args = lab::encode(lab::NEW_COUNTER, &(1u64,));
    instance
        .submit(&port, 2, lab::NEW_COUNTER, &args, u64::MAX)
        .unwrap();
    port.wait(u64::MAX).unwrap();
    let done = next(&port);
    let handle = u64::from_le_bytes(done.data[16..24].try_into().unwrap());
    assert!(find(handle).is_ok());
    drop(done);
    assert_eq!(find(handle).unwrap_err().code, Code::Stale);
    instance.close();
}

#[test]
fn calls_from_four_threads_all_complete_in_order_per_thread() {
    const EACH: u64 = 2_000;
    let instance = instance();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let instance = &instance;
            scope.spawn(move || {
                let port = Port::open(32).unwrap();
                let (mut sent, mut done) = (0, 0);
                while done < EACH {
                    while sent < EACH
                        && instance
                            .submit(&port, sent, 0, &shout_args("x"), u64::MAX)
                            .is_ok()
                    {
                        sent += 1;
                    }
                    port.wait(clock::deadline(Duration::from_secs(60))).unwrap();
                    for completed in port.reap().unwrap() {
                        assert_eq!((completed.token, completed.code), (done, Code::Ok));
                        done += 1;
                    }
                }
            });
        }
    });
    instance.close();
}

#[test]
fn no_error_has_no_value() {
    assert_eq!(size_of::<Result<u8, NoError>>(), 1);
}
