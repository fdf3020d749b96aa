//! `rtrb` and `rtrb_0_3`: the ring with cached positions, in its current version and the previous
//! one.
//!
//! The two differ in the positions that a side caches, so both are peers. Batches are chunks,
//! written and read in place.

use crate::channel::{Batches, Channel, Partial, Waiting};
use crate::patience;

macro_rules! ring {
    ($subject:ident, $library:ident, $name:literal) => {
        #[doc = concat!("`", $name, "`.")]
        #[derive(Debug)]
        pub struct $subject;

        impl Channel for $subject {
            const NAME: &'static str = $name;
            const WAITING: Waiting = Waiting::Looks;
            type Sender = $library::Producer<u64>;
            type Receiver = $library::Consumer<u64>;

            fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
                $library::RingBuffer::new(capacity)
            }

            #[inline]
            fn send(sender: &mut Self::Sender, message: u64) {
                patience::until(|| sender.push(message).ok());
            }

            #[inline]
            fn receive(receiver: &mut Self::Receiver) -> u64 {
                patience::until(|| receiver.pop().ok())
            }

            #[inline]
            fn try_send(sender: &mut Self::Sender, message: u64) -> bool {
                sender.push(message).is_ok()
            }

            #[inline]
            fn try_receive(receiver: &mut Self::Receiver) -> Option<u64> {
                receiver.pop().ok()
            }
        }

        impl Batches for $subject {
            #[inline]
            fn send_batch(
                sender: &mut Self::Sender,
                first: u64,
                count: usize,
                rule: Partial,
            ) -> usize {
                let chunk = match sender.write_chunk_uninit(count) {
                    Err($library::chunks::ChunkError::TooFewSlots(free))
                        if rule == Partial::Yes && free > 0 =>
                    {
                        sender.write_chunk_uninit(free)
                    }
                    chunk => chunk,
                };
                chunk.map_or(0, |chunk| chunk.fill_from_iter(first..))
            }

            #[inline]
            fn receive_batch(
                receiver: &mut Self::Receiver,
                count: usize,
                rule: Partial,
                mut each: impl FnMut(u64),
            ) -> usize {
                let chunk = match receiver.read_chunk(count) {
                    Err($library::chunks::ChunkError::TooFewSlots(there))
                        if rule == Partial::Yes && there > 0 =>
                    {
                        receiver.read_chunk(there)
                    }
                    chunk => chunk,
                };
                let Ok(chunk) = chunk else {
                    return 0;
                };
                let (front, back) = chunk.as_slices();
                front.iter().chain(back).for_each(|message| each(*message));
                let received = chunk.len();
                chunk.commit_all();
                received
            }
        }
    };
}

ring!(Rtrb, rtrb, "rtrb");
ring!(Rtrb03, rtrb_0_3, "rtrb_0_3");
