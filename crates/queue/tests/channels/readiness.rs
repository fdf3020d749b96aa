//! A receiver in an event loop: the state of its file descriptor according to poll(2).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Arc, Barrier};
use std::thread;

use thalweg_queue::{EventFd, Select, broadcast, mpmc, rendezvous, spsc};

use crate::executor::poll_once;
use crate::threads::{Crew, scaled, until, watch};

/// Whether poll(2) reports the descriptor as readable within `ms` milliseconds (-1: no limit).
fn poll(fd: BorrowedFd<'_>, ms: i32) -> bool {
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the call gets one pollfd, a local variable.
    unsafe { libc::poll(&mut poll, 1, ms) == 1 }
}

/// Reads the eventfd. Returns how often it was written since the last read.
fn writes(fd: BorrowedFd<'_>) -> u64 {
    let mut count = 0u64;
    // SAFETY: the call reads eight bytes into `count`; the descriptor does not block.
    let read = unsafe { libc::read(fd.as_raw_fd(), std::ptr::from_mut(&mut count).cast(), 8) };
    if read == 8 { count } else { 0 }
}

flavours! { each: spsc, mpsc, lane, mpmc;
    fn first_value_makes_readable_and_arm_makes_unreadable(chan) {
        let (sender, receiver) = chan::channel::<u64>(64).unwrap();
        let mut readiness = receiver.readiness().unwrap();
        assert!(!poll(readiness.as_fd(), 0));
        for round in 0..100 {
            assert!(!readiness.arm());
            assert!(!poll(readiness.as_fd(), 0));
            for i in 0..=round % 7 {
                sender.send(i).unwrap();
            }
            assert!(poll(readiness.as_fd(), 0));
            assert!(readiness.arm(), "there are values");
            assert!(receiver.try_iter().eq(0..=round % 7));
        }
        assert_eq!(receiver.stats().receiver_wakes, 100);
    }

    fn armed_descriptor_is_written_once(chan) {
        let (sender, receiver) = chan::channel::<u64>(1_000).unwrap();
        let mut readiness = receiver.readiness().unwrap();
        assert!(!readiness.arm());
        (0..1_000).for_each(|i| sender.send(i).unwrap());
        assert_eq!(receiver.try_iter().count(), 1_000);
        (0..1_000).for_each(|i| sender.send(i).unwrap());
        assert_eq!(writes(readiness.as_fd()), 1);
        assert_eq!(receiver.try_iter().count(), 1_000);
        // It was not armed again, so nothing is written.
        (0..1_000).for_each(|i| sender.send(i).unwrap());
        assert_eq!(writes(readiness.as_fd()), 0);
    }

    fn close_makes_readable_and_arm_returns_true(chan) {
        let (sender, receiver) = chan::channel::<u64>(4).unwrap();
        let mut readiness = receiver.readiness().unwrap();
        assert!(!readiness.arm());
        sender.send(1).unwrap();
        drop(sender);
        assert!(poll(readiness.as_fd(), 0));
        assert!(readiness.arm());
        assert_eq!(receiver.recv(), Ok(1));
        assert!(readiness.arm(), "closed is for ever");
        assert!(receiver.recv().is_err());
    }

    fn event_loop_receives_everything(chan) {
        let count = scaled(20_000, 1) as u64;
        let (sender, receiver) = chan::channel::<u64>(16).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || (0..count).for_each(|i| sender.send(i).unwrap()));
            let mut readiness = receiver.readiness().unwrap();
            let mut next = 0;
            loop {
                for value in receiver.try_iter() {
                    assert_eq!(value, next);
                    next += 1;
                }
                if readiness.arm() {
                    if receiver.is_closed() && receiver.is_empty() {
                        break;
                    }
                } else {
                    assert!(poll(readiness.as_fd(), 60_000), "it sleeps although something came");
                }
            }
            assert_eq!(next, count);
        });
    }

    /// Both the armed descriptor and the thread that blocks must be notified.
    fn armed_receiver_that_blocks_is_woken(chan) {
        let crew = Crew::new();
        let (sender, receiver) = chan::channel::<u64>(4).unwrap();
        let thread = crew.spawn(move || {
            let mut readiness = receiver.readiness().unwrap();
            assert!(!readiness.arm());
            let value = receiver.recv();
            assert!(poll(readiness.as_fd(), 0));
            value
        });
        crew.asleep(1);
        sender.send(3).unwrap();
        until("the value is received", || sender.is_empty());
        assert_eq!(thread.join().unwrap(), Ok(3));
    }
}

#[test]
fn every_armed_readiness_of_mpmc_is_notified() {
    let (sender, receiver) = mpmc::channel::<u64>(4).unwrap();
    let others = [receiver.clone(), receiver.clone()];
    let mut all = others.each_ref().map(|one| one.readiness().unwrap());
    assert!(all.iter_mut().all(|one| !one.arm()));
    sender.send(1).unwrap();
    assert!(all.iter().all(|one| poll(one.as_fd(), 0)));
    assert_eq!(receiver.recv(), Ok(1));
    assert!(all.iter_mut().all(|one| !one.arm()));
    assert!(all.iter().all(|one| !poll(one.as_fd(), 0)));
}

#[test]
fn armed_readiness_dropped_leaves_the_wait_list() {
    let _watched = watch();
    let crew = Crew::new();
    let (sender, receiver) = mpmc::channel::<u64>(4).unwrap();
    for _ in 0..100 {
        let mut readiness = receiver.readiness().unwrap();
        assert!(!readiness.arm());
        // Arming twice has the effect of arming once.
        assert!(!readiness.arm());
    }
    let thread = crew.spawn(move || receiver.recv());
    crew.asleep(1);
    sender.send(1).unwrap();
    assert_eq!(thread.join().unwrap(), Ok(1));
    assert_eq!(sender.stats().receiver_wakes, 1);
}

#[test]
fn readiness_and_select_share_one_receiver() {
    let (sender, receiver) = spsc::channel::<u64>(4).unwrap();
    let mut readiness = receiver.readiness().unwrap();
    assert!(!readiness.arm());
    thread::scope(|scope| {
        scope.spawn(|| {
            let sender = sender;
            thread::sleep(std::time::Duration::from_millis(5));
            sender.send(1).unwrap();
        });
        let mut select = Select::new();
        select.recv(&receiver);
        select.ready();
    });
    assert!(poll(readiness.as_fd(), 0));
    assert!(readiness.arm());
}

/// A signal and a reset at the same moment. After a reset, the descriptor is not readable; after a
/// signal, it is.
#[test]
fn reset_during_signal_leaves_no_event_behind() {
    let _watched = watch();
    for _ in 0..scaled(2_000, 1) {
        let event = Arc::new(EventFd::new().unwrap());
        let start = Arc::new(Barrier::new(2));
        let signals = thread::spawn({
            let (event, start) = (Arc::clone(&event), Arc::clone(&start));
            move || {
                start.wait();
                event.signal();
            }
        });
        start.wait();
        while !signals.is_finished() {
            event.reset();
        }
        signals.join().unwrap();
        event.reset();
        assert!(!poll(event.as_fd(), 0), "readable without a signal");
        event.signal();
        assert!(poll(event.as_fd(), 0));
    }
}

#[test]
fn every_broadcast_receiver_has_a_descriptor_that_a_message_makes_readable() {
    let (sender, receiver) = broadcast::channel(1).unwrap();
    let other = receiver.clone();
    let mut both = [receiver.readiness().unwrap(), other.readiness().unwrap()];
    for i in 0..3 {
        for readiness in &mut both {
            assert!(!readiness.arm());
            assert!(!poll(readiness.as_fd(), 0));
        }
        sender.send(i).unwrap();
        for (readiness, receiver) in both.iter_mut().zip([&receiver, &other]) {
            assert!(poll(readiness.as_fd(), 0));
            assert!(readiness.arm(), "there is a message");
            assert_eq!(receiver.try_recv(), Ok(Ok(i)));
        }
    }
}

#[test]
fn offer_makes_a_rendezvous_readable() {
    let (sender, receiver) = rendezvous::channel();
    let mut readiness = receiver.readiness().unwrap();
    assert!(!readiness.arm());
    let mut send = sender.send_async(1);
    assert!(poll_once(&mut send).is_pending());
    assert!(poll(readiness.as_fd(), 0));
    assert!(readiness.arm(), "there is an offer");
    assert_eq!(receiver.try_recv(), Ok(1));
    assert!(poll_once(&mut send).is_ready());
    assert!(!readiness.arm());
    assert_eq!(sender.try_send(2), Ok(()), "the event loop waits");
    assert!(poll(readiness.as_fd(), 0));
    assert_eq!(receiver.try_recv(), Ok(2));
}
