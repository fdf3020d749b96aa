//! Resources inside of values, and those that are made and ended while others are served.

#[path = "../../../crates/bindgen/tests/from_code/kept.rs"]
mod api;
#[path = "../../../crates/bindgen/tests/from_code/generated/kept.rs"]
mod kept;
#[path = "../../../crates/bindgen/tests/from_code/generated/kept_from_code.rs"]
mod kept_from_code;

use api::{GIVEN_BACK, Hall, Order, Outcome, Price, Seat};
use kept::{HallClient, SeatClient};
use kept_from_code::HallFromCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use thalweg::Call;

struct Opera;

impl Hall for Opera {
    fn book(&self, call: &Call, name: &str, row: u32, count: u32) -> Order {
        let seat = || api::seat(call, row).expect("there is room for handles");
        Order {
            name: name.to_owned(),
            seats: (0..count).map(|_| seat()).collect(),
            spare: (count > 1).then(seat),
        }
    }

    async fn cancel(&self, call: &Call, order: Order) -> Result<u32, Outcome> {
        let mut last = None;
        for seat in order.seats {
            let seat: Arc<Seat> = seat.take(call).map_err(|_| Outcome::Gone)?;
            last = Some(seat.row());
        }
        last.ok_or(Outcome::Gone)
    }

    fn settle(&self, _: &Call, mut orders: Vec<Order>) -> Outcome {
        let Some(mut order) = orders.pop() else {
            return Outcome::Gone;
        };
        match (order.seats.len(), order.seats.pop()) {
            (2.., Some(seat)) => Outcome::Cut(seat, order.seats.len() as u32),
            (_, Some(seat)) => {
                order.seats.push(seat);
                Outcome::Kept(order)
            }
            (_, None) => Outcome::Gone,
        }
    }

    fn prices(&self) -> Box<dyn Iterator<Item = Price> + Send> {
        Box::new((1..=3).map(|row| Price { row, cents: 900 }))
    }
}

fn open() -> HallClient {
    HallClient::start(|| HallFromCode::new(Opera)).unwrap()
}

#[test]
fn seats_come_and_go_inside_of_values() {
    let hall = open();
    let order = hall.book("Ada", 4, 2).wait().unwrap();
    assert_eq!((order.name.as_str(), order.seats.len()), ("Ada", 2));
    let rows = |seats: Vec<thalweg::Held<SeatClient>>| -> Vec<u32> {
        let clients = seats.into_iter().map(|seat| seat.into_client().unwrap());
        clients.map(|seat| seat.row().wait().unwrap()).collect()
    };
    assert_eq!(rows(order.seats), [4, 4]);
    let order = hall.book("Bo", 7, 3).wait().unwrap();
    assert_eq!(hall.cancel(&order).wait().unwrap(), 7);

    let orders = vec![hall.book("Cy", 2, 1).wait().unwrap()];
    let kept::Outcome::Kept(order) = hall.settle(&orders).wait().unwrap() else {
        panic!("one seat is kept as it is");
    };
    assert_eq!(rows(order.seats), [2]);
    let orders = vec![hall.book("Di", 9, 3).wait().unwrap()];
    let kept::Outcome::Cut((seat, left)) = hall.settle(&orders).wait().unwrap() else {
        panic!("of several one is left");
    };
    assert_eq!((rows(vec![seat]), left), (vec![9], 2));
}

#[test]
fn a_seat_is_made_and_given_back_while_others_are_served() {
    let hall = open();
    let seat = hall.seat(1_000_000).wait().unwrap();
    assert_eq!(seat.row().wait().unwrap(), 1_000_000);
    let before = GIVEN_BACK.load(Relaxed);
    seat.destroy().wait().unwrap();
    // The other test's are far below.
    assert!(GIVEN_BACK.load(Relaxed) >= before + 1_000_000);
}
