//! What a closed client's streams are told.

use thalweg::Code;
use thalweg_conformance::Echo;
use thalweg_conformance::conformance::ConformanceClient;

/// The service goes in its own turn, and with it the stream's last writer: who closes has to be first, whatever the turn is at.
#[test]
fn a_stream_of_a_closed_client_never_ends_well() {
    for round in 0..200 {
        let client = ConformanceClient::start(Echo::default).unwrap();
        let mut stream = client.ticks().wait().unwrap();
        // To stop so many takes its time, in which the turn under way comes to its end.
        let others: Vec<_> = (0..256).map(|_| client.never()).collect();
        let calls: Vec<_> = (0..round % 50).map(|_| client.tick(1)).collect();
        client.close();
        let last = stream.find_map(Result::err);
        assert_eq!(last.map(|why| why.code), Some(Code::Cancelled), "{round}");
        drop((others, calls));
    }
}
