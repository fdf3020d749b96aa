//! A channel has exactly its capacity, for values of every size and alignment, over many laps.

use thalweg_queue::{CapacityError, CreateError, mpmc as many, mpsc as some, spsc as one};

use crate::threads::{scaled, watch};

const CAPACITIES: [usize; 8] = [1, 2, 3, 7, 8, 10, 64, 1_000];

/// A value made from a number, as far as its size allows.
trait Sample: Default + Send + 'static {
    fn of(number: usize) -> Self;
    /// Whether the value was made from `number` and is aligned correctly.
    fn is(&self, number: usize) -> bool;
}

/// `N` bytes that depend on the number.
struct Bytes<const N: usize>([u8; N]);

impl<const N: usize> Default for Bytes<N> {
    fn default() -> Self {
        Self::of(0)
    }
}

impl<const N: usize> Sample for Bytes<N> {
    fn of(number: usize) -> Self {
        Self(std::array::from_fn(|i| (number * 7 + i) as u8))
    }

    fn is(&self, number: usize) -> bool {
        self.0 == Self::of(number).0
    }
}

impl Sample for u64 {
    fn of(number: usize) -> Self {
        number as u64
    }

    fn is(&self, number: usize) -> bool {
        *self == number as u64
    }
}

macro_rules! aligned {
    ($($name:ident $align:literal),*) => {$(
        #[derive(Default)]
        #[repr(align($align))]
        struct $name(u64);

        impl Sample for $name {
            fn of(number: usize) -> Self {
                Self(number as u64)
            }

            fn is(&self, number: usize) -> bool {
                self.0 == number as u64 && std::ptr::from_ref(self).addr() % $align == 0
            }
        }
    )*};
}

aligned!(Align16 16, Align32 32, Align64 64, Align128 128);

/// A value of size 0 with a large alignment.
#[derive(Default)]
#[repr(align(128))]
struct AlignedNothing;

impl Sample for AlignedNothing {
    fn of(_number: usize) -> Self {
        Self
    }

    fn is(&self, _number: usize) -> bool {
        std::ptr::from_ref(self).addr().is_multiple_of(128)
    }
}

macro_rules! for_each_sample {
    ($test:ident) => {{
        $test::<Bytes<0>>();
        $test::<Bytes<1>>();
        $test::<Bytes<8>>();
        $test::<u64>();
        $test::<Bytes<24>>();
        $test::<Bytes<56>>();
        $test::<Bytes<60>>();
        $test::<Bytes<488>>();
        $test::<Align16>();
        $test::<Align32>();
        $test::<Align64>();
        $test::<Align128>();
        $test::<AlignedNothing>();
    }};
}

flavours! { each: spsc, mpsc, lane, mpmc;
    fn send_fills_exactly_and_each_recv_frees_one_slot(chan) {
        fn test<T: Sample>() {
            for capacity in CAPACITIES {
                let (sender, receiver) = chan::channel::<T>(capacity).unwrap();
                assert_eq!((sender.capacity(), receiver.capacity()), (capacity, capacity));
                let (mut sent, mut received) = (0, 0);
                let mut send = |fits: bool| {
                    assert_eq!(sender.is_full(), !fits);
                    let result = sender.try_send(T::of(sent));
                    assert_eq!(result.is_ok(), fits, "value {sent} of {capacity}");
                    match result {
                        Ok(()) => sent += 1,
                        Err(back) => assert!(back.into_inner().is(sent)),
                    }
                };
                let mut receive = || {
                    assert!(receiver.recv().is_ok_and(|value| value.is(received)));
                    received += 1;
                };
                (0..capacity).for_each(|_| send(true));
                send(false);
                // Receives one value and sends one, for many laps of the small channels.
                for _ in 0..scaled(3_000.max(2 * capacity), 20) {
                    receive();
                    send(true);
                    send(false);
                }
                // Receives some values and sends as many.
                for step in 1..20 {
                    let count = step * 31 % capacity + 1;
                    (0..count).for_each(|_| receive());
                    (0..count).for_each(|_| send(true));
                    send(false);
                }
                (0..capacity).for_each(|_| receive());
                assert!(receiver.try_recv().is_err());
                assert!(receiver.is_empty() && sender.is_empty());
            }
        }
        for_each_sample!(test);
    }

    fn len_counts_the_values_inside(chan) {
        for capacity in CAPACITIES {
            let (sender, receiver) = chan::channel::<u64>(capacity).unwrap();
            for _ in 0..3 {
                for i in 0..capacity {
                    assert_eq!((sender.len(), receiver.len()), (i, i));
                    sender.try_send(1).unwrap();
                }
                assert_eq!(sender.stats().depth, capacity);
                for i in (0..capacity).rev() {
                    receiver.recv().unwrap();
                    assert_eq!((sender.len(), receiver.len()), (i, i));
                }
            }
            assert_eq!(receiver.stats().high_water, capacity);
        }
    }

    fn capacity_out_of_range_is_an_error(chan) {
        for capacity in [0, (1 << 30) + 1, usize::MAX / 2, usize::MAX] {
            assert!(chan::channel::<u64>(capacity).is_err());
            assert!(chan::channel::<()>(capacity).is_err());
        }
    }
}

fn fills_in_place<T: Sample>() {
    for capacity in CAPACITIES {
        let (mut sender, mut receiver) = one::channel::<T>(capacity).unwrap();
        let (mut sent, mut received) = (0, 0);
        for step in 0..scaled(200, 20) {
            let wanted = step * 13 % (capacity + 3);
            let room = capacity - (sent - received);
            let count = sender
                .try_fill(wanted, || {
                    sent += 1;
                    Some(T::of(sent - 1))
                })
                .unwrap();
            assert_eq!(count, wanted.min(room));
            let wanted = step * 7 % (capacity + 2);
            let inside = sent - received;
            let count = receiver.try_drain(wanted, |value| {
                assert!(value.is(received));
                received += 1;
            });
            assert_eq!(count, wanted.min(inside));
        }
    }
}

#[test]
fn try_fill_and_try_drain_respect_the_capacity() {
    let _watched = watch();
    for_each_sample!(fills_in_place);
}

/// All senders of an mpsc channel together fill it exactly, whichever of them has the credits.
#[test]
fn send_by_many_senders_fills_the_channel_exactly() {
    let _watched = watch();
    for capacity in [1, 2, 3, 4, 7, 8, 10, 64, 1_000] {
        for senders in [2, 3, 16, 40] {
            let (sender, receiver) = some::channel::<usize>(capacity).unwrap();
            let mut senders: Vec<_> = (0..senders).map(|_| sender.clone()).collect();
            senders.push(sender);
            // After their 64th value, most senders have a lane and unused credits.
            let mut inside = 0;
            for round in 0..scaled(200, 3) {
                loop {
                    let before = inside;
                    for sender in &senders {
                        inside += usize::from(sender.try_send(round).is_ok());
                    }
                    if inside == before {
                        break;
                    }
                }
                assert_eq!(inside, capacity, "with {} senders", senders.len());
                assert_eq!(receiver.len(), capacity);
                assert!(senders.iter().all(|sender| sender.is_full()));
                for _ in 0..round % (capacity + 1) {
                    receiver.recv().unwrap();
                    inside -= 1;
                }
            }
        }
    }
}

/// One receive frees exactly one slot, across all senders.
#[test]
fn recv_on_full_channel_frees_one_slot_for_all_senders() {
    let _watched = watch();
    for capacity in [1, 2, 3, 7, 64] {
        let (sender, receiver) = some::channel::<usize>(capacity).unwrap();
        let senders: Vec<_> = (0..10).map(|_| sender.clone()).collect();
        let fill = || {
            let mut sent = 0;
            while senders.iter().any(|sender| sender.try_send(1).is_ok()) {
                sent += 1;
            }
            sent
        };
        assert_eq!(fill(), capacity);
        for _ in 0..scaled(1_000, 10) {
            receiver.recv().unwrap();
            assert_eq!(fill(), 1);
        }
    }
}

#[test]
fn capacity_beyond_memory_is_an_error() {
    // 2^54 bytes exceed every address space, and 2^70 bytes do not fit in a `usize`.
    type Large = [u8; 1 << 24];
    type Larger = [u8; 1 << 40];
    const MOST: usize = 1 << 30;
    // Dropping such a channel would need one of its values on the stack, so this code must not be
    // compiled.
    fn error<C, E>(made: Result<C, E>) -> Option<E> {
        made.map(std::mem::forget).err()
    }
    let refused = Some(CapacityError(MOST));
    assert_eq!(error(one::channel::<Large>(MOST)), refused);
    assert_eq!(error(some::channel::<Large>(MOST)), refused);
    assert_eq!(error(many::channel::<Large>(MOST)), refused);
    assert_eq!(error(one::channel::<Larger>(MOST)), refused);
    assert_eq!(error(some::channel::<Larger>(MOST)), refused);
    assert_eq!(error(many::channel::<Larger>(MOST)), refused);
    let with = error(many::with::<Large>(MOST, Default::default()));
    assert_eq!(with, Some(CreateError::Capacity(CapacityError(MOST))));
}

#[test]
fn creation_errors_describe_the_cause() {
    assert_eq!(
        CapacityError(0).to_string(),
        "the capacity 0 is invalid: it must be 1 to 2^30"
    );
    assert_eq!(
        CapacityError(8).to_string(),
        "not enough memory for a queue of 8"
    );
    let capacity = one::with::<u8>(0, Default::default()).err();
    assert_eq!(capacity, Some(CreateError::Capacity(CapacityError(0))));
}

/// One thread fills the channel and empties it, next to idle senders that have lanes and credits,
/// through any of the senders.
#[test]
fn send_beside_idle_senders_fills_the_channel_exactly() {
    let _watched = watch();
    for (capacity, idle) in [(64, 8), (1_024, 256), (4, 1), (37, 5), (1_024, 3)] {
        let (sender, receiver) = some::channel::<usize>(capacity).unwrap();
        let idle: Vec<_> = (0..scaled(idle, 3)).map(|_| sender.clone()).collect();
        for one in &idle {
            // The 64th value creates a lane.
            for number in 0..65 {
                one.try_send(number).unwrap();
                receiver.recv().unwrap();
            }
        }
        for round in 0..3 {
            for number in 0..capacity {
                let sender = idle.get(round).unwrap_or(&sender);
                assert!(!sender.is_full());
                assert!(
                    sender.try_send(number).is_ok(),
                    "{} idle senders: full at {number} of {capacity}",
                    idle.len()
                );
            }
            for one in idle.iter().chain([&sender]) {
                assert!(one.is_full() && one.try_send(0).is_err());
            }
            assert!((0..capacity).all(|number| receiver.recv() == Ok(number)));
        }
    }
}

/// Many threads send without a receiver. The channel accepts exactly its capacity, whichever
/// threads send.
#[test]
fn send_on_many_threads_fills_the_channel_exactly() {
    let _watched = watch();
    for capacity in [16, 64, 500] {
        for round in 0..scaled(40, 2) {
            let (sender, receiver) = some::channel::<usize>(capacity).unwrap();
            let senders: Vec<_> = (0..4).map(|_| sender.clone()).collect();
            for one in senders.iter().chain([&sender]) {
                for number in 0..66 {
                    one.try_send(number).unwrap();
                    receiver.recv().unwrap();
                }
            }
            let threads = senders.into_iter().enumerate().map(|(name, sender)| {
                std::thread::spawn(move || {
                    let mut accepted = 0;
                    // Some continue to the end, others leave credits unused.
                    while accepted < capacity / (1 + (name + round) % 4) {
                        if sender.try_send(accepted).is_err() {
                            break;
                        }
                        accepted += 1;
                    }
                    (sender, accepted)
                })
            });
            let threads: Vec<_> = threads.collect();
            let mut inside = 0;
            let mut senders = vec![sender];
            for thread in threads {
                let (sender, accepted) = thread.join().unwrap();
                inside += accepted;
                senders.push(sender);
            }
            assert!(inside <= capacity);
            while senders[round % 5].try_send(0).is_ok() {
                inside += 1;
            }
            assert_eq!(inside, capacity);
            assert!(senders.iter().all(|sender| sender.is_full()));
            assert_eq!(receiver.try_iter().count(), capacity);
        }
    }
}
