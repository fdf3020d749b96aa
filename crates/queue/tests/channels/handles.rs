//! The properties of handles: Send, Sync, Clone and Debug.

use std::rc::Rc;

use thalweg_queue::{
    Readiness, RecvError, RecvFuture, RecvStream, SendFuture, SendTimeoutError, TryRecvError,
    TrySendError, mpmc, mpsc, oneshot, spsc,
};

/// Compiles only if each type implements the trait.
macro_rules! are {
    ($trait:ident: $($type:ty),* $(,)?) => {
        const _: () = {
            const fn is<T: $trait>() {}
            $(is::<$type>();)*
        };
    };
}

/// Compiles only if no type implements the trait. Otherwise there are two applicable
/// implementations.
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
    // Values that are only moved need not be Sync.
    mpmc::Sender<std::cell::Cell<u8>>, mpmc::Receiver<std::cell::Cell<u8>>,
);
are!(Send:
    RecvFuture<'static, spsc::Rx<u8>>, RecvFuture<'static, mpsc::Rx<u8>>, RecvFuture<'static, mpmc::Handle<u8>>,
    SendFuture<'static, spsc::Tx<u8>>, SendFuture<'static, mpsc::Tx<u8>>, SendFuture<'static, mpmc::Handle<u8>>,
    RecvStream<'static, spsc::Rx<u8>>, RecvStream<'static, mpsc::Rx<u8>>, RecvStream<'static, mpmc::Handle<u8>>,
);
// A future with a shared borrow of its handle is Send only if the handle is Sync.
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
// A channel of values that are not Send is not Send.
are_not!(Send:
    spsc::Sender<Rc<u8>>, spsc::Receiver<Rc<u8>>, mpsc::Sender<Rc<u8>>, mpsc::Receiver<Rc<u8>>,
    mpmc::Sender<Rc<u8>>, mpmc::Receiver<Rc<u8>>, oneshot::Sender<Rc<u8>>, oneshot::Receiver<Rc<u8>>,
    std::sync::MutexGuard<'static, u8>, mpmc::Sender<std::sync::MutexGuard<'static, u8>>,
    SendFuture<'static, mpmc::Handle<Rc<u8>>>, RecvFuture<'static, mpmc::Handle<Rc<u8>>>,
    // A readiness is not Sync, and it borrows a receiver that is not Sync either.
    Readiness<'static, spsc::Rx<u8>>,
);
are_not!(Sync: mpmc::Sender<Rc<u8>>, mpmc::Receiver<Rc<u8>>);

flavours! { each: spsc, mpsc, lane, mpmc;
    fn values_that_are_not_send_work_within_one_thread(chan) {
        let (sender, receiver) = chan::channel::<Rc<u8>>(2).unwrap();
        let value = Rc::new(1);
        sender.send(Rc::clone(&value)).unwrap();
        assert_eq!(Rc::strong_count(&value), 2);
        assert!(Rc::ptr_eq(&receiver.recv().unwrap(), &value));
        assert_eq!(Rc::strong_count(&value), 1);
    }

    fn debug_output_names_the_type(chan) {
        let (sender, receiver) = chan::channel::<u8>(2).unwrap();
        sender.send(1).unwrap();
        assert_eq!(format!("{sender:?}"), "Sender { len: 1, capacity: 2, closed: false }");
        receiver.close();
        assert_eq!(format!("{receiver:?}"), "Receiver { len: 1, capacity: 2, closed: true }");
        assert_eq!(format!("{:?}", receiver.readiness().is_ok()), "true");
    }

    fn receiver_can_be_iterated_by_reference(chan) {
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
fn errors_describe_the_cause_but_not_the_value() {
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
