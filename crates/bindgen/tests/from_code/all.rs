//! All that has a form.

use thalweg::{method, resource, service, value};

/// Numbers and texts.
///
/// With a second paragraph.
#[value]
pub struct Plain {
    a: bool,
    b: (u8, i8, u16, i16),
    c: (u32, i32, u64, i64),
    d: (f32, f64, char),
    /// The name is one of WIT's words.
    r#type: String,
    e: Box<str>,
}

#[value]
pub enum Color {
    Red,
    /// Of grass.
    DarkGreen,
}

#[value]
pub enum Shape {
    Empty,
    Circle(f64),
    Line(Plain, Color),
}

#[value]
pub struct Nested {
    list: Vec<Option<Shape>>,
    array: [Plain; 3],
    bytes: Box<[u8]>,
    result: Result<(), Color>,
    both: Result<u8, ()>,
}

pub struct HTTPHandle;

#[resource]
impl HTTPHandle {
    pub fn open(name: &str) -> Result<Self, Color> {
        Err(Color::Red)
    }
    pub fn new() -> Self {
        Self
    }
    pub async fn read(&self, plain: &[Plain]) -> Nested {
        todo!()
    }
}

/// The service.
#[service(package = "a:all@0.1.0", max_queued_calls = 64, max_queued_bytes = "1MiB", overflow = "block")]
pub trait All {
    fn nothing(&self);
    fn fails(&self) -> Result<(), ()>;
    #[method(idempotent)]
    fn takes(&self, call: &thalweg::Call, lent: &HTTPHandle, given: Arc<HTTPHandle>) -> HTTPHandle;
    /// Numbers.
    #[method(overflow = "drop-oldest", capacity = 64)]
    async fn numbers(&self) -> impl Iterator<Item = u64> + Send + 'static;
}
