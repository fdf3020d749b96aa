//! Streams of a closed client.

use thalweg::Code;
use thalweg_conformance::Echo;
use thalweg_conformance::conformance::ConformanceClient;

/// The service is dropped in its own turn, with the last writer of the stream. The outcome must be
/// that of the close, which comes first.
#[test]
fn stream_of_a_closed_client_ends_as_cancelled() {
    for round in 0..200 {
        let client = ConformanceClient::start(Echo::default).unwrap();
        let mut stream = client.ticks().wait().unwrap();
        // Stopping many streams takes long enough for the current turn to finish.
        let others: Vec<_> = (0..256).map(|_| client.never()).collect();
        let calls: Vec<_> = (0..round % 50).map(|_| client.tick(1)).collect();
        client.close();
        let last = stream.find_map(Result::err);
        assert_eq!(last.map(|why| why.code), Some(Code::Cancelled), "{round}");
        drop((others, calls));
    }
}
