//! What stays in the service: given away inside of values, begun and ended while others are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use thalweg::port::FutureReader;
use thalweg::{Call, Failure, Held, StreamReader};

/// How many seats were given back.
pub static GIVEN_BACK: AtomicU32 = AtomicU32::new(0);

/// A seat in a hall.
pub struct Seat {
    row: u32,
}

/// A place of somebody's.
#[thalweg::resource]
impl Seat {
    /// In that row, once it is free.
    pub async fn new(row: u32) -> Self {
        Self { row }
    }

    /// Where it is.
    pub fn row(&self) -> u32 {
        self.row
    }

    /// Gives it back.
    pub async fn destroy(self: Arc<Self>) {
        GIVEN_BACK.fetch_add(self.row, Relaxed);
    }
}

/// Seats of one order.
#[thalweg::value]
pub struct Order {
    /// Who ordered.
    pub name: String,
    /// Side by side.
    pub seats: Vec<Held<Seat>>,
    /// For whoever comes later.
    pub spare: Option<Held<Seat>>,
}

/// What happened to an order.
#[thalweg::value]
pub enum Outcome {
    /// It is as it was.
    Kept(Order),
    /// One seat is left of it.
    Cut(Held<Seat>, u32),
    /// Nobody came.
    Gone,
}

/// What a seat costs now.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// Of this row.
    pub row: u32,
    /// In cents.
    pub cents: u32,
}

/// What is played.
#[thalweg::value]
pub struct Evening {
    /// Its name.
    pub title: String,
    /// Minute by minute, how loud it is.
    pub sound: Held<StreamReader<u32>>,
    /// What is said afterwards, if anybody comes.
    pub notice: Option<Held<FutureReader<String>>>,
    /// Each time the curtain falls.
    pub curtain: Held<StreamReader<()>>,
}

/// A hall.
#[thalweg::service(package = "a:kept@0.1.0")]
pub trait Hall {
    /// So many seats in a row.
    #[thalweg::method(notice_interval = "5s")]
    fn book(&self, call: &Call, name: &str, row: u32, count: u32) -> Order;

    /// How many rows away the last one is; the seats are free then.
    async fn cancel(&self, call: &Call, order: Order) -> Result<u32, Outcome>;

    /// What is left of them.
    fn settle(&self, call: &Call, orders: Vec<Order>) -> Outcome;

    /// Newest first, one for each row.
    #[thalweg::method(overflow = "conflate", conflation_key = "row")]
    fn prices(&self) -> Box<dyn Iterator<Item = Price> + Send>;

    /// Tonight, if anything is played.
    fn listen(&self, call: &Call, minutes: u32) -> Result<Evening, Vec<Price>>;
}

/// As a seat of a value.
///
/// # Errors
/// `overloaded`: there are too many handles.
pub fn seat(call: &Call, row: u32) -> Result<Held<Seat>, Failure> {
    call.hold(Seat { row })
}
