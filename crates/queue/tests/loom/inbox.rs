//! The stack that its reader takes whole.

use loom::sync::Arc;
use loom::thread;
use thalweg_queue::Inbox;
use thalweg_queue::explore::model;

/// Two writers and a reader that takes all twice: each value comes once.
#[test]
fn inbox_is_taken_whole_and_once() {
    model(|| {
        let inbox = Arc::new(Inbox::new());
        let writers: Vec<_> = (1..=2usize)
            .map(|value| {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || inbox.push(value))
            })
            .collect();
        let mut sum: usize = inbox.take_all().sum();
        for writer in writers {
            writer.join().unwrap();
        }
        sum += inbox.take_all().sum::<usize>();
        assert_eq!(sum, 3);
    });
}
