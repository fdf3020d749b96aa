//! The request, and the consumer's bookkeeping.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Instant;

/// Two cache lines, as in the binding framework that the workload comes from: callback, user data,
/// id, payload, eight scalars, the link for intrusive queues, and whether it was answered.
///
/// Requests are written in place, in a block of the producer that was touched before the start. The
/// timed work is filling in a request and handing it over, not allocating its memory. Every ingress
/// hands over the same thing, a pointer to the request.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Request {
    callback: fn(&mut Books, &Request),
    /// The value that the caller gets back in its callback; here, the producer's number.
    user_data: usize,
    id: u64,
    payload: &'static [u8],
    scalars: [u64; 8],
    /// The link for the queues that link requests.
    pub(super) next: AtomicPtr<Request>,
    answered: AtomicBool,
}

const _: () = assert!(size_of::<Request>() == 128);

/// The keys that the scalars are mixed with, so that swapped scalars are detected.
const KEYS: [u64; 8] = [
    1,
    1 << 9,
    1 << 17,
    1 << 25,
    1 << 33,
    1 << 41,
    1 << 49,
    1 << 57,
];

/// Bytes of a payload.
const PAYLOAD: usize = 24;

/// Payloads are sections of this text; neighbouring requests have different ones.
static TEXT: [u8; 64 + PAYLOAD] = {
    let mut text = [0; 64 + PAYLOAD];
    let mut at = 0;
    while at < text.len() {
        text[at] = (at * 37 + 11) as u8;
        at += 1;
    }
    text
};

fn payload(id: u64) -> &'static [u8] {
    let from = (id % 64) as usize;
    &TEXT[from..from + PAYLOAD]
}

impl Request {
    /// The memory of a request, with empty fields.
    #[must_use]
    pub fn blank() -> Self {
        Self {
            callback: |books, _| books.blank += 1,
            user_data: 0,
            id: 0,
            payload: &[],
            scalars: [0; 8],
            next: AtomicPtr::new(ptr::null_mut()),
            answered: AtomicBool::new(false),
        }
    }

    /// Fills in the `id`th request of `producer`.
    #[inline]
    pub fn fill(&mut self, producer: usize, id: u64) {
        *self = Self {
            callback: Books::enter,
            user_data: producer,
            id,
            payload: payload(id),
            scalars: KEYS.map(|key| key.wrapping_add(id)),
            next: AtomicPtr::new(ptr::null_mut()),
            answered: AtomicBool::new(false),
        };
    }

    /// Runs the request; called by the consumer.
    #[inline]
    pub fn run(&self, books: &mut Books) {
        (self.callback)(books, self);
    }

    /// The producer that submitted it.
    #[must_use]
    pub fn producer(&self) -> usize {
        self.user_data
    }

    fn intact(&self) -> bool {
        self.payload == payload(self.id)
            && self.scalars == KEYS.map(|key| key.wrapping_add(self.id))
    }
}

/// A request in transit; its owner may read it.
#[derive(Clone, Copy, Debug)]
pub struct Submitted(pub NonNull<Request>);

// SAFETY: the submitter guarantees that the request does not change until it was run
// (`Submit::submit`), and a request may be read from any thread.
unsafe impl Send for Submitted {}

/// The consumer's findings so far.
#[derive(Debug)]
pub struct Books {
    /// By producer: the expected next id.
    due: Vec<u64>,
    count: u64,
    total: u64,
    doubles: u64,
    unordered: u64,
    damaged: u64,
    blank: u64,
    /// The time of the last request.
    pub finished: Option<Instant>,
}

impl Books {
    /// Empty books, for the given numbers of requests and producers.
    #[must_use]
    pub fn new(producers: usize, each: u64) -> Self {
        Self {
            due: vec![0; producers],
            count: 0,
            total: producers as u64 * each,
            doubles: 0,
            unordered: 0,
            damaged: 0,
            blank: 0,
            finished: None,
        }
    }

    /// The callback of a no-op request: it counts and checks the request.
    fn enter(&mut self, request: &Request) {
        if request.answered.load(Ordering::Relaxed) {
            self.doubles += 1;
            return;
        }
        request.answered.store(true, Ordering::Relaxed);
        self.damaged += u64::from(!request.intact());
        match self.due.get_mut(request.user_data) {
            Some(due) => {
                self.unordered += u64::from(*due != request.id);
                *due = request.id + 1;
            }
            None => self.damaged += 1,
        }
        self.count += 1;
        if self.count == self.total {
            self.finished = Some(Instant::now());
        }
    }

    /// The total number of requests to run.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number of requests that were run.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A description of the errors, if there are any.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let faults = [
            (self.total.saturating_sub(self.count), "missing"),
            (self.count.saturating_sub(self.total), "too many"),
            (self.doubles, "run twice"),
            (self.unordered, "out of their producer's order"),
            (self.damaged, "damaged"),
            (self.blank, "never filled in"),
        ];
        let said: Vec<String> = faults
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!said.is_empty()).then(|| format!("of {} requests {}", self.total, said.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(count: u64) -> Vec<Request> {
        let filled = |id| {
            let mut request = Request::blank();
            request.fill(0, id);
            request
        };
        (0..count).map(filled).collect()
    }

    #[test]
    fn all_requests_once_and_in_order_leave_nothing_to_say() {
        let mut books = Books::new(1, 3);
        for request in &requests(3) {
            assert!(books.finished.is_none());
            request.run(&mut books);
        }
        assert_eq!((books.fault(), books.count()), (None, 3));
        assert!(books.finished.is_some());
    }

    #[test]
    fn what_is_missing_is_counted() {
        let mut books = Books::new(1, 3);
        requests(1)[0].run(&mut books);
        assert_eq!(books.fault().unwrap(), "of 3 requests 2 missing");
    }

    #[test]
    fn a_request_that_comes_twice_is_no_other() {
        let mut books = Books::new(1, 2);
        let all = requests(2);
        for request in [&all[0], &all[0], &all[1]] {
            request.run(&mut books);
        }
        assert_eq!(books.fault().unwrap(), "of 2 requests 1 run twice");
    }

    #[test]
    fn requests_that_change_places_are_seen() {
        let mut books = Books::new(1, 2);
        let all = requests(2);
        all[1].run(&mut books);
        all[0].run(&mut books);
        assert_eq!(
            books.fault().unwrap(),
            "of 2 requests 2 out of their producer's order"
        );
    }

    #[test]
    fn damage_is_seen_in_scalars_payload_and_sender() {
        let damages: [fn(&mut Request); 4] = [
            |request| request.scalars.swap(0, 7),
            |request| request.payload = &request.payload[1..],
            |request| request.payload = payload(request.id + 1),
            |request| request.user_data = 9,
        ];
        for damage in damages {
            let mut books = Books::new(1, 1);
            let mut request = requests(1).remove(0);
            damage(&mut request);
            request.run(&mut books);
            assert!(books.fault().unwrap().contains("1 damaged"));
        }
    }

    #[test]
    fn memory_that_nobody_filled_in_is_no_request() {
        let mut books = Books::new(1, 1);
        Request::blank().run(&mut books);
        assert_eq!(
            books.fault().unwrap(),
            "of 1 requests 1 missing, 1 never filled in"
        );
    }
}
