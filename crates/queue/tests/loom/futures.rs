//! Loom models of waiting tasks.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use loom::thread;
use thalweg_queue::explore::model;
use thalweg_queue::{mpmc, spsc};

use crate::counter;

#[test]
fn receiving_task_is_woken_or_gets_the_value() {
    model(|| {
        let (sender, receiver) = spsc::channel(1).unwrap();
        let (count, waker) = counter();
        let sending = thread::spawn(move || {
            sender.try_send(5).unwrap();
            sender
        });
        let mut future = receiver.recv_async();
        let mut context = Context::from_waker(&waker);
        let polled = Pin::new(&mut future).poll(&mut context);
        sending.join().unwrap();
        if polled.is_pending() {
            assert_eq!(count.woken(), 1);
            assert_eq!(Pin::new(&mut future).poll(&mut context), Poll::Ready(Ok(5)));
        }
    });
}

#[test]
fn sending_task_is_woken_or_finds_capacity() {
    model(|| {
        let (sender, receiver) = spsc::channel(1).unwrap();
        sender.try_send(5).unwrap();
        let (count, waker) = counter();
        let receiving = thread::spawn(move || {
            receiver.try_recv().unwrap();
            receiver
        });
        let mut future = sender.send_async(6);
        let mut context = Context::from_waker(&waker);
        let polled = Pin::new(&mut future).poll(&mut context);
        let receiver = receiving.join().unwrap();
        if polled.is_pending() {
            assert_eq!(count.woken(), 1);
            assert_eq!(
                Pin::new(&mut future).poll(&mut context),
                Poll::Ready(Ok(()))
            );
        }
        assert_eq!(receiver.try_recv(), Ok(6));
    });
}

/// A dropped future has taken no value, and passes its wake-up on to the thread behind it.
#[test]
fn future_dropped_leaves_the_value_to_the_next() {
    model(|| {
        let (sender, receiver) = mpmc::channel(1).unwrap();
        let waits = thread::spawn({
            let receiver = receiver.clone();
            move || receiver.recv()
        });
        let (_, waker) = counter();
        let mut future = receiver.recv_async();
        let polled = Pin::new(&mut future).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending(), "nobody sent");
        let sending = thread::spawn(move || {
            sender.try_send(7).unwrap();
            sender
        });
        drop(future);
        assert_eq!(waits.join().unwrap(), Ok(7));
        sending.join().unwrap();
    });
}

/// Two tasks wait while the last value is being sent and the channel is closed. One gets the value,
/// and then the other one sees the end.
#[test]
fn close_during_a_send_ends_both_tasks() {
    model(|| {
        let (sender, receiver) = mpmc::channel(1).unwrap();
        let mut receivers = [receiver.clone(), receiver.clone()];
        let mut tasks: Vec<_> = receivers
            .iter_mut()
            .map(|receiver| (receiver.recv_async(), counter(), 0))
            .collect();
        for (future, (_, waker), _) in &mut tasks {
            assert!(
                Pin::new(future)
                    .poll(&mut Context::from_waker(waker))
                    .is_pending()
            );
        }
        let sending = thread::spawn(move || (sender.try_send(1).is_ok(), sender));
        receiver.close();
        let mut results = Vec::new();
        // Like an executor: polls each woken task until no task is woken.
        let mut run = || {
            let mut progress = false;
            tasks.retain_mut(|(future, (count, waker), polled)| {
                if count.woken() == *polled {
                    return true;
                }
                *polled = count.woken();
                progress = true;
                match Pin::new(future).poll(&mut Context::from_waker(waker)) {
                    Poll::Ready(result) => results.push(result.is_ok()),
                    Poll::Pending => return true,
                }
                false
            });
            progress
        };
        run();
        let (sent, sender) = sending.join().unwrap();
        while run() {}
        assert_eq!(results.len(), 2, "both have ended");
        assert_eq!(results.contains(&true), sent);
        assert!(results.contains(&false), "there was one value");
        drop(sender);
    });
}
