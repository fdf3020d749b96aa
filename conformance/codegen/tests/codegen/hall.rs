//! Resources, streams and futures inside values, and a resource with an async constructor and
//! destructor.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use thalweg::port::FutureReader;
use thalweg::{Call, CallError, Failure};
use thalweg_codegen_tests::api::hall::{
    self, Evening, Hall, Order, Outcome, Price, RETURNED, Seat,
};
use thalweg_codegen_tests::services::hall::{self as generated, HallClient, SeatClient};
use thalweg_codegen_tests::services::hall_from_code::HallFromCode;

struct Opera;

impl Opera {
    fn evening(call: &Call, minutes: u32) -> Result<Evening, Failure> {
        // Not every test reads all streams.
        let (sound, loud) = call.stream();
        call.spawn(move |_| drop(sound.send_all(0..minutes)));
        let (curtain, falls) = call.stream();
        call.spawn(move |_| drop(curtain.send_all([(), ()])));
        let (notice, reader) = call.future();
        call.spawn(move |_| drop(notice.set(&format!("{minutes} minutes"))));
        let reader = (minutes > 1).then_some(reader);
        Ok(Evening {
            title: "Echo".to_owned(),
            sound: call.own_stream(loud)?,
            notice: reader.map(|reader| call.own_future(reader)).transpose()?,
            curtain: call.own_stream(falls)?,
        })
    }
}

impl Hall for Opera {
    fn book(&self, call: &Call, name: &str, row: u32, count: u32) -> Order {
        let seat = || hall::seat(call, row).expect("there are free handles");
        Order {
            name: name.to_owned(),
            seats: (0..count).map(|_| seat()).collect(),
            spare: (count > 1).then(seat),
        }
    }

    async fn cancel(&self, call: &Call, order: Order) -> Result<u32, Outcome> {
        let mut last = None;
        for seat in order.seats {
            let seat: Arc<Seat> = seat.take(call).map_err(|_| Outcome::Empty)?;
            last = Some(seat.row());
        }
        last.ok_or(Outcome::Empty)
    }

    fn settle(&self, _: &Call, mut orders: Vec<Order>) -> Outcome {
        let Some(mut order) = orders.pop() else {
            return Outcome::Empty;
        };
        match (order.seats.len(), order.seats.pop()) {
            (2.., Some(seat)) => Outcome::Reduced(seat, order.seats.len() as u32),
            (_, Some(seat)) => {
                order.seats.push(seat);
                Outcome::Unchanged(order)
            }
            (_, None) => Outcome::Empty,
        }
    }

    fn prices(&self) -> Box<dyn Iterator<Item = Price> + Send> {
        Box::new((1..=3).map(|row| Price { row, cents: 900 }))
    }

    fn listen(&self, call: &Call, minutes: u32) -> Result<Evening, Vec<Price>> {
        if minutes == 0 {
            return Err(vec![Price { row: 0, cents: 0 }]);
        }
        Ok(Self::evening(call, minutes).expect("there are free handles"))
    }
}

fn open() -> HallClient {
    HallClient::start(|| HallFromCode::new(Opera)).unwrap()
}

#[test]
fn resources_inside_values_pass_in_both_directions() {
    let hall = open();
    let order = hall.book("Ada", 4, 2).wait().unwrap();
    assert_eq!((order.name.as_str(), order.seats.len()), ("Ada", 2));
    let rows = |seats: Vec<thalweg::Owned<SeatClient>>| -> Vec<u32> {
        let clients = seats.into_iter().map(|seat| seat.into_client().unwrap());
        clients.map(|seat| seat.row().wait().unwrap()).collect()
    };
    assert_eq!(rows(order.seats), [4, 4]);
    let order = hall.book("Bo", 7, 3).wait().unwrap();
    assert_eq!(hall.cancel(&order).wait().unwrap(), 7);

    let orders = vec![hall.book("Cy", 2, 1).wait().unwrap()];
    let generated::Outcome::Unchanged(order) = hall.settle(&orders).wait().unwrap() else {
        panic!("an order with one seat does not change");
    };
    assert_eq!(rows(order.seats), [2]);
    let orders = vec![hall.book("Di", 9, 3).wait().unwrap()];
    let generated::Outcome::Reduced((seat, left)) = hall.settle(&orders).wait().unwrap() else {
        panic!("an order with several seats is reduced");
    };
    assert_eq!((rows(vec![seat]), left), (vec![9], 2));
}

#[test]
fn async_constructor_and_destructor_run_once() {
    let hall = open();
    let seat = hall.seat(1_000_000).wait().unwrap();
    assert_eq!(seat.row().wait().unwrap(), 1_000_000);
    let before = RETURNED.load(Relaxed);
    seat.destroy().wait().unwrap();
    // The rows of the other tests are far smaller.
    assert!(RETURNED.load(Relaxed) >= before + 1_000_000);
}

#[test]
fn streams_and_future_inside_a_value_are_readable() {
    let hall = open();
    let evening = hall.listen(3).wait().unwrap();
    assert_eq!(evening.title, "Echo");
    let sound: Result<Vec<u32>, _> = evening.sound.into_reader().unwrap().collect();
    assert_eq!(sound.unwrap(), [0, 1, 2]);
    assert_eq!(evening.curtain.into_reader().unwrap().count(), 2);
    let notice = evening.notice.map(|notice| notice.into_reader().unwrap());
    assert_eq!(
        notice.map(FutureReader::wait).unwrap().unwrap(),
        "3 minutes"
    );

    let short = hall.listen(1).wait().unwrap();
    assert!(short.notice.is_none());
    let CallError::Service(prices) = hall.listen(0).wait().err().unwrap() else {
        panic!("there is no performance");
    };
    assert_eq!(prices, [generated::Price { row: 0, cents: 0 }]);
}
