//! Lists that are parameters of the typed client.

use thalweg::wire::Decode as _;
use thalweg_conformance::Echo;
use thalweg_conformance::conformance::{ConformanceClient, Point};

#[test]
fn list_parameter_takes_an_array_a_slice_a_vec_and_a_view() {
    let client = ConformanceClient::start(Echo::default).unwrap();
    let texts = vec!["left".to_owned(), "right".to_owned()];
    assert_eq!(
        client.echo_strings(&["left", "right"]).wait().unwrap(),
        texts
    );
    assert_eq!(client.echo_strings(&texts).wait().unwrap(), texts);
    assert_eq!(client.echo_strings(&texts[1..]).wait().unwrap(), ["right"]);
    assert_eq!(client.echo_strings(&texts.as_view()).wait().unwrap(), texts);
    let none: &[String] = &[];
    assert!(client.echo_strings(none).wait().unwrap().is_empty());
    let points = [Point { x: 1, y: -1 }, Point { x: 2, y: -2 }];
    assert_eq!(client.echo_points(&points).wait().unwrap(), points);
    let grid = vec![vec![1, 2], Vec::new()];
    assert_eq!(client.echo_grid(&[&[1, 2][..], &[]]).wait().unwrap(), grid);
}
