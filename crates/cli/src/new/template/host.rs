//! A Rust program that uses the service. The service is linked into it: `cargo run`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let client = my_service::start()?;
    let greeting = client.greet("Ada").wait()?;
    println!("{}: {}", greeting.number, greeting.text);
    let names = vec!["Grace".to_owned(), "Barbara".to_owned()];
    for greeting in client.greet_all(&names).wait()? {
        let greeting = greeting?;
        println!("{}: {}", greeting.number, greeting.text);
    }
    Ok(())
}
