//! Resources inside of values, and those that are made and ended while others are served.

#[path = "../../../crates/bindgen/tests/from_code/kept.rs"]
mod api;
#[path = "../../../crates/bindgen/tests/from_code/generated/kept.rs"]
mod kept;
#[path = "../../../crates/bindgen/tests/from_code/generated/kept_from_code.rs"]
mod kept_from_code;

use api::{Evening, GIVEN_BACK, Hall, Order, Outcome, Price, Seat};
use kept::{HallClient, SeatClient};
use kept_from_code::HallFromCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use thalweg::port::FutureReader;
use thalweg::{Call, CallError, Failure};

struct Opera;

impl Opera {
    fn evening(call: &Call, minutes: u32) -> Result<Evening, Failure> {
        // Not everybody reads them.
        let (sound, loud) = call.stream();
        call.spawn(move |_| drop(sound.send_all(0..minutes)));
        let (curtain, falls) = call.stream();
        call.spawn(move |_| drop(curtain.send_all([(), ()])));
        let (notice, said) = call.future();
        call.spawn(move |_| drop(notice.set(&format!("{minutes} minutes"))));
        let said = (minutes > 1).then_some(said);
        Ok(Evening {
            title: "Echo".to_owned(),
            sound: call.hold_stream(loud)?,
            notice: said.map(|said| call.hold_future(said)).transpose()?,
            curtain: call.hold_stream(falls)?,
        })
    }
}

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

    fn listen(&self, call: &Call, minutes: u32) -> Result<Evening, Vec<Price>> {
        if minutes == 0 {
            return Err(vec![Price { row: 0, cents: 0 }]);
        }
        Ok(Self::evening(call, minutes).expect("there is room for handles"))
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

#[test]
fn streams_and_a_future_come_inside_of_a_value() {
    let hall = open();
    let evening = hall.listen(3).wait().unwrap();
    assert_eq!(evening.title, "Echo");
    let sound: Result<Vec<u32>, _> = evening.sound.into_reader().unwrap().collect();
    assert_eq!(sound.unwrap(), [0, 1, 2]);
    assert_eq!(evening.curtain.into_reader().unwrap().count(), 2);
    let said = evening.notice.map(|notice| notice.into_reader().unwrap());
    assert_eq!(said.map(FutureReader::wait).unwrap().unwrap(), "3 minutes");

    let short = hall.listen(1).wait().unwrap();
    assert!(short.notice.is_none());
    let CallError::Service(prices) = hall.listen(0).wait().err().unwrap() else {
        panic!("nothing is played");
    };
    assert_eq!(prices, [kept::Price { row: 0, cents: 0 }]);
}
