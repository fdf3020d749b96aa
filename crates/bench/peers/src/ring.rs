//! `rtrb` and `rtrb_0_3`: the ring with cached positions, in its current version and the previous
//! one.
//!
//! The two differ in the positions that a side caches, so both are peers. Batches are chunks,
//! written and read in place.

use crate::channel::{Channel, Waiting};
use crate::patience;

/// The longest chunk: half of the ring, because a chunk as long as the ring would make the sides
/// take turns.
fn longest_chunk(capacity: usize) -> usize {
    (capacity / 2).max(1)
}

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

            #[inline]
            fn send_batch(sender: &mut Self::Sender, first: u64, count: usize) {
                let longest = longest_chunk(sender.buffer().capacity());
                let end = first + count as u64;
                let mut next = first;
                while next < end {
                    let length = longest.min((end - next) as usize);
                    patience::until(|| {
                        let chunk = sender.write_chunk_uninit(length).ok()?;
                        Some(chunk.fill_from_iter(next..))
                    });
                    next += length as u64;
                }
            }

            #[inline]
            fn receive_batch(
                receiver: &mut Self::Receiver,
                count: usize,
                mut each: impl FnMut(u64),
            ) {
                let longest = longest_chunk(receiver.buffer().capacity());
                let mut left = count;
                while left > 0 {
                    let length = longest.min(left);
                    patience::until(|| {
                        let chunk = receiver.read_chunk(length).ok()?;
                        let (front, back) = chunk.as_slices();
                        front.iter().chain(back).for_each(|message| each(*message));
                        chunk.commit_all();
                        Some(())
                    });
                    left -= length;
                }
            }
        }
    };
}

ring!(Rtrb, rtrb, "rtrb");
ring!(Rtrb03, rtrb_0_3, "rtrb_0_3");
