//! Replaces [`crate::stack`](self) if each fiber is a thread, which has a stack of its own.

#[expect(dead_code, reason = "no system call here allocates stacks")]
#[path = "../stack/error.rs"]
mod error;

pub use error::StackError;

/// No guards of this crate limit the number of threads.
pub(crate) fn max_guarded() -> Option<usize> {
    None
}

/// Empty: the thread has its own stack.
#[derive(Debug)]
pub(crate) struct Stack;

/// Unknown here.
pub(crate) fn usable_around(_: usize) -> Option<(usize, usize)> {
    None
}

/// Unknown here.
pub(crate) fn lowest_touched(_: usize, _: usize) -> Option<usize> {
    None
}

#[derive(Debug)]
pub(crate) struct Depot;

impl Depot {
    pub(crate) fn of(_: usize) -> &'static Self {
        &Self
    }

    pub(crate) fn release(&self) {}
}

#[derive(Debug)]
pub(crate) struct Magazine;

impl Magazine {
    pub(crate) fn new(_: &'static Depot) -> Self {
        Self
    }

    pub(crate) fn take(&mut self) -> Result<Stack, StackError> {
        Ok(Stack)
    }

    pub(crate) fn give(&mut self, _: Stack) {}

    pub(crate) fn needs_trim(&self) -> bool {
        false
    }

    pub(crate) fn trim(&mut self) -> bool {
        false
    }
}

/// The standard library reports overflows of threads.
pub(crate) mod overflow {
    use std::ptr::NonNull;
    use std::sync::Arc;

    #[derive(Clone, Debug)]
    pub(crate) struct Name(Arc<str>);

    impl Name {
        pub(crate) fn new(name: impl Into<Arc<str>>) -> Self {
            Self(name.into())
        }

        pub(crate) fn text(&self) -> &str {
            &self.0
        }
    }

    #[derive(Debug)]
    pub(crate) struct AlternateStack;

    impl AlternateStack {
        pub(crate) fn where_missing() -> Option<Self> {
            None
        }
    }

    pub(crate) fn install() -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn set_running_name(_: Option<fn() -> Option<NonNull<Name>>>) {}
}
