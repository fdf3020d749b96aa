//! The implementation of the service.

use thalweg::port::{Call, StreamReader, Task};

use crate::my_service::{self, MyService, MyServiceError};

/// The longest name, in bytes.
const LONGEST: u32 = 64;

/// The state of one instance. Each client has its own instance, which serves one call at a time.
#[derive(Debug, Default)]
pub struct MyServiceImpl {
    greetings: u64,
}

impl MyServiceImpl {
    fn greeting(&mut self, name: &str) -> Result<my_service::Greeting, MyServiceError> {
        if name.is_empty() {
            return Err(MyServiceError::EmptyName);
        }
        if name.len() > LONGEST as usize {
            return Err(MyServiceError::TooLong(LONGEST));
        }
        self.greetings += 1;
        Ok(my_service::Greeting {
            number: self.greetings,
            text: format!("Hello, {name}!"),
        })
    }
}

impl MyService for MyServiceImpl {
    fn greet(&mut self, _: &Call, name: String) -> Result<my_service::Greeting, MyServiceError> {
        self.greeting(&name)
    }

    fn greet_all(
        &mut self,
        _: &Call,
        names: Vec<String>,
    ) -> Task<Result<StreamReader<my_service::Greeting, MyServiceError>, MyServiceError>> {
        let greetings: Result<Vec<_>, _> = names.iter().map(|name| self.greeting(name)).collect();
        // The task runs in an actor of its own, in which it may wait.
        Task::new(move |call| {
            let greetings = greetings?;
            let (writer, reader) = call.stream();
            call.spawn(move |_| {
                for greeting in &greetings {
                    // The reader is gone, or the call was cancelled.
                    if writer.send(greeting).is_err() {
                        return;
                    }
                }
                // A stream that nobody finishes ends with an error.
                let _ = writer.finish();
            });
            Ok(reader)
        })
    }
}
