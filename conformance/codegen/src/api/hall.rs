//! Resources, streams and futures inside values, and a resource with an async constructor and destructor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use thalweg::port::FutureReader;
use thalweg::{Call, Failure, Owned, StreamReader};

/// The sum of the row numbers of all returned seats.
pub static RETURNED: AtomicU32 = AtomicU32::new(0);

/// A seat in a hall.
pub struct Seat {
    row: u32,
}

/// A reserved seat.
#[thalweg::resource]
impl Seat {
    /// Reserves a seat in a row, once one is free.
    pub async fn new(row: u32) -> Self {
        Self { row }
    }

    /// The row of the seat.
    pub fn row(&self) -> u32 {
        self.row
    }

    /// Returns the seat.
    pub async fn destroy(self: Arc<Self>) {
        RETURNED.fetch_add(self.row, Relaxed);
    }
}

/// The seats of one order.
#[thalweg::value]
pub struct Order {
    /// The name of the customer.
    pub name: String,
    /// Adjacent seats.
    pub seats: Vec<Owned<Seat>>,
    /// A seat for a late guest.
    pub spare: Option<Owned<Seat>>,
}

/// What happened to an order.
#[thalweg::value]
pub enum Outcome {
    /// The order is unchanged.
    Unchanged(Order),
    /// One seat of the order remains, and this many were returned.
    Reduced(Owned<Seat>, u32),
    /// The order had no seats.
    Empty,
}

/// The current price of a seat.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// The row.
    pub row: u32,
    /// The price in cents.
    pub cents: u32,
}

/// A performance.
#[thalweg::value]
pub struct Evening {
    /// The title.
    pub title: String,
    /// The volume, minute by minute.
    pub sound: Owned<StreamReader<u32>>,
    /// The announcement after the performance, if there is an audience.
    pub notice: Option<Owned<FutureReader<String>>>,
    /// One element each time the curtain falls.
    pub curtain: Owned<StreamReader<()>>,
}

/// A hall.
#[thalweg::service(package = "a:hall@0.1.0")]
pub trait Hall {
    /// Books `count` seats in a row.
    #[thalweg::method(notice_interval = "5s")]
    fn book(&self, call: &Call, name: &str, row: u32, count: u32) -> Order;

    /// Returns all seats of an order. The result is the row of the last one.
    async fn cancel(&self, call: &Call, order: Order) -> Result<u32, Outcome>;

    /// Reduces the last order to one seat.
    fn settle(&self, call: &Call, orders: Vec<Order>) -> Outcome;

    /// The newest price of each row.
    #[thalweg::method(overflow = "conflate", conflation_key = "row")]
    fn prices(&self) -> Box<dyn Iterator<Item = Price> + Send>;

    /// Tonight's performance, if there is one.
    fn listen(&self, call: &Call, minutes: u32) -> Result<Evening, Vec<Price>>;
}

/// A seat as a field of a value.
///
/// # Errors
/// `overloaded`: there are too many handles.
pub fn seat(call: &Call, row: u32) -> Result<Owned<Seat>, Failure> {
    call.own(Seat { row })
}
