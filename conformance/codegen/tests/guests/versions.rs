//! A program that was compiled for a later version of the package than the guest.

use thalweg::CallError;
use thalweg::guest::OpenGuest;
use thalweg_codegen_tests::guests::grown::{Colors, Point, ProbeClient, Trouble};

use crate::library::{address, few, guest};

fn point(name: &str, x: i32, y: i32) -> Point {
    Point {
        name: name.to_owned(),
        x,
        y,
        ..Point::default()
    }
}

#[test]
fn compatible_version_is_converted() {
    let _few = few();
    let probe = ProbeClient::open(&address(&guest("grown", &[]))).unwrap();
    assert_eq!(probe.add(3).wait(), Ok(3));
    assert_eq!(probe.echo("text").wait(), Ok("text".to_owned()));
    let long = probe.echo(&"x".repeat(100_001)).wait();
    assert_eq!(long, Err(CallError::Service(Trouble::TooLong(100_001))));

    let mut noted = point("a", 1, 2);
    noted.note = Some("the guest does not see it".to_owned());
    let moved = probe.move_all(
        &[noted, point("b", 3, 4)],
        &point("by", 10, 20),
        Some(Colors::BLUE | Colors::WHITE),
        "nor this",
    );
    assert_eq!(moved.wait(), Ok(vec![point("b", 13, 0), point("a", 11, 0)]));

    let mut points = probe.points(2, 2).wait().unwrap();
    assert_eq!(points.next(), Some(Ok(point("point 1", 1, -1))));
    let because = Trouble::Because("it was asked to".to_owned());
    assert_eq!(points.next(), Some(Err(CallError::Service(because))));

    let cell = probe.cell(7).wait().unwrap();
    assert_eq!(cell.get().wait(), Ok(7));
    assert_eq!(probe.cell_open(cell).wait(), Ok(7));
    let sums = probe.batch(|probe| [probe.add(1), probe.add(1)]);
    assert_eq!(sums.map(|sum| sum.wait()), [Ok(4), Ok(5)]);
}
