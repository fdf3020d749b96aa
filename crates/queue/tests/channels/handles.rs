//! What can be done with handles: sent to another thread, shared, cloned, printed.

use std::rc::Rc;

use thalweg_queue::{
    Readiness, RecvError, RecvFuture, RecvStream, SendFuture, SendTimeoutError, TryRecvError,
    TrySendError, mpmc, mpsc, oneshot, spsc,
};

/// Compiles only if each type is of the trait.
macro_rules! are {
    ($trait:ident: $($type:ty),* $(,)?) => {
        const _: () = {
            const fn is<T: $trait>() {}
            $(is::<$type>();)*
        };
    };
}

/// Compiles only if no type is of the trait: else there are two implementations to choose from.
macro_rules! are_not {
    ($trait:ident: $($type:ty),* $(,)?) => {
        $(const _: () = {
            trait Ambiguous<A> {
                fn some() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + $trait> Ambiguous<u8> for T {}
            let _ = <$type as Ambiguous<_>>::some;
        };)*
    };
}

are!(Send:
    spsc::Sender<u8>, spsc::Receiver<u8>, mpsc::Sender<u8>, mpsc::Receiver<u8>,
    mpmc::Sender<u8>, mpmc::Receiver<u8>, oneshot::Sender<u8>, oneshot::Receiver<u8>,
    // What is only moved need not be shared.
    mpmc::Sender<std::cell::Cell<u8>>, mpmc::Receiver<std::cell::Cell<u8>>,
);
are!(Send:
    RecvFuture<'static, spsc::Rx<u8>>, RecvFuture<'static, mpsc::Rx<u8>>, RecvFuture<'static, mpmc::Handle<u8>>,
    SendFuture<'static, spsc::Tx<u8>>, SendFuture<'static, mpsc::Tx<u8>>, SendFuture<'static, mpmc::Handle<u8>>,
    RecvStream<'static, spsc::Rx<u8>>, RecvStream<'static, mpsc::Rx<u8>>, RecvStream<'static, mpmc::Handle<u8>>,
);
// A future that shares its handle may move to another thread only where the handle may be shared with one.
are!(Send:
    RecvFuture<'static, mpmc::Handle<u8>, &'static mpmc::Receiver<u8>>,
    SendFuture<'static, mpmc::Handle<u8>, &'static mpmc::Sender<u8>>,
);
are_not!(Send:
    RecvFuture<'static, spsc::Rx<u8>, &'static spsc::Receiver<u8>>,
    RecvFuture<'static, mpsc::Rx<u8>, &'static mpsc::Receiver<u8>>,
    RecvStream<'static, mpsc::Rx<u8>, &'static mpsc::Receiver<u8>>,
    SendFuture<'static, spsc::Tx<u8>, &'static spsc::Sender<u8>>,
    SendFuture<'static, mpsc::Tx<u8>, &'static mpsc::Sender<u8>>,
);
are!(Sync: mpmc::Sender<u8>, mpmc::Receiver<u8>, mpmc::Sender<std::cell::Cell<u8>>);
are!(Clone: mpsc::Sender<Vec<u8>>, mpmc::Sender<Vec<u8>>, mpmc::Receiver<Vec<u8>>);

are_not!(Sync:
    spsc::Sender<u8>, spsc::Receiver<u8>, mpsc::Sender<u8>, mpsc::Receiver<u8>,
);
are_not!(Clone:
    spsc::Sender<u8>, spsc::Receiver<u8>, mpsc::Receiver<u8>, oneshot::Sender<u8>, oneshot::Receiver<u8>,
);
// What may not go to another thread does not go through a channel.
are_not!(Send:
    spsc::Sender<Rc<u8>>, spsc::Receiver<Rc<u8>>, mpsc::Sender<Rc<u8>>, mpsc::Receiver<Rc<u8>>,
    mpmc::Sender<Rc<u8>>, mpmc::Receiver<Rc<u8>>, oneshot::Sender<Rc<u8>>, oneshot::Receiver<Rc<u8>>,
    std::sync::MutexGuard<'static, u8>, mpmc::Sender<std::sync::MutexGuard<'static, u8>>,
    SendFuture<'static, mpmc::Handle<Rc<u8>>>, RecvFuture<'static, mpmc::Handle<Rc<u8>>>,
    // One thread's at a time, and borrowed from a receiver that is so too.
    Readiness<'static, spsc::Rx<u8>>,
);
are_not!(Sync: mpmc::Sender<Rc<u8>>, mpmc::Receiver<Rc<u8>>);

flavours! { each: spsc, mpsc, lane, mpmc;
    fn within_one_thread_anything_can_be_sent(chan) {
        let (sender, receiver) = chan::channel::<Rc<u8>>(2).unwrap();
        let value = Rc::new(1);
        sender.send(Rc::clone(&value)).unwrap();
        assert_eq!(Rc::strong_count(&value), 2);
        assert!(Rc::ptr_eq(&receiver.recv().unwrap(), &value));
        assert_eq!(Rc::strong_count(&value), 1);
    }

    fn they_say_what_they_are(chan) {
        let (sender, receiver) = chan::channel::<u8>(2).unwrap();
        sender.send(1).unwrap();
        assert_eq!(format!("{sender:?}"), "Sender { len: 1, capacity: 2, closed: false }");
        receiver.close();
        assert_eq!(format!("{receiver:?}"), "Receiver { len: 1, capacity: 2, closed: true }");
        assert_eq!(format!("{:?}", receiver.readiness().is_ok()), "true");
    }

    fn a_receiver_is_iterated_by_reference(chan) {
        let (sender, receiver) = chan::channel::<u8>(4).unwrap();
        (0..4).for_each(|i| sender.send(i).unwrap());
        let mut got = Vec::new();
        for value in &receiver {
            got.push(value);
            if value == 1 {
                break;
            }
        }
        got.extend(receiver.try_iter().take(1));
        drop(sender);
        let mut rest = receiver.iter();
        got.extend(rest.by_ref());
        assert_eq!(got, [0, 1, 2, 3]);
        assert_eq!((rest.next(), rest.next()), (None, None));
    }
}

#[test]
fn errors_say_what_happened_and_not_what_the_value_was() {
    struct Secret;
    assert_eq!(
        TrySendError::Full(Secret).to_string(),
        "the channel is full"
    );
    assert_eq!(
        format!("{:?}", TrySendError::Closed(Secret)),
        "TrySendError(\"the channel is closed\")"
    );
    assert_eq!(
        SendTimeoutError::TimedOut(Secret).to_string(),
        "the deadline passed"
    );
    assert_eq!(TryRecvError::Empty.to_string(), "the channel is empty");
    assert_eq!(RecvError.to_string(), "the channel is closed");
}
