//! Prints code that writes (*put*), reads (*get*) and checks messages, in any language.
//!
//! A [`Codec`] walks through a type in the order of its layout and calls the hooks of a
//! [`Dialect`], which print them as straight-line code. A language whose generic package takes functions
//! for the parts of a value does not need it: those of C++, Node and Python do. C and Rust have code of
//! their own. `go`, `lua` and `nim` have dialects, and `crates/bindgen/tests/dialects` has that of Java.
//!
//! The generic package of a language has two objects that the code uses: a *writer*, and a *message*
//! that is checked and then read. They follow these rules, which are those of [`thalweg_wire`]:
//!
//! 1. Bytes that are not put are 0. A list or string is put as the next tail, so that the tails are
//!    in pre-order.
//! 2. Putting can fail: a value has the wrong type, or the message is too large. The code does not
//!    test for it. The writer either raises an error, or it remembers the first one and does nothing
//!    from then on.
//! 3. A message is checked once, before anything is read. A check can fail. The message either
//!    raises an error, or it remembers it; from then on, the tests that return a count or a
//!    discriminant return 0, and the others do nothing.
//! 4. All offsets are inside the message: the root is checked when the message is opened, and a list
//!    when its elements are. Getting never fails.
//! 5. The table of handles is before the root, so a writer must have their number at the beginning.
//!    A writer puts a value that can have handles twice: first to count them.
//! 6. A member or an element of the caller's value is evaluated once, because evaluating it can run
//!    code of the caller.

mod walk;

pub use walk::{Codec, routines};

use super::source::Source;
use super::types::{Handle, TypeIndex};
use crate::model::Scalar;
use std::fmt;

/// What a routine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It writes a value at an offset of a message.
    Put,
    /// It returns the value at an offset of a message.
    Get,
    /// It checks the value at an offset of a message.
    Check,
}

/// A value that is put or got in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// A number, a `bool` or a `char`.
    Scalar(Scalar),
    /// `string`.
    Text,
    /// A list of numbers; `list<u8>` too.
    Numbers(Scalar),
    /// A list of numbers of a fixed length, stored in place.
    NumberArray(Scalar, u32),
    /// An index into the message's table of handles.
    Handle(Handle),
}

/// A test of the value at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// The byte is 0 or 1.
    Bool,
    /// The `u32` is a Unicode scalar value.
    Char,
    /// The tail is inside the message, after the previous tail, and UTF-8.
    Text,
    /// The tail is inside the message, after the previous tail, and aligned. Returns the number of
    /// elements.
    List {
        /// Bytes of an element. If it is 0, the list has no tail and at most
        /// [`MAX_UNSIZED`](thalweg_wire::MAX_UNSIZED) elements.
        size: u32,
        /// Alignment of an element.
        align: u32,
    },
    /// The unsigned number of `size` bytes is less than `count`. Returns the number.
    Tag {
        /// Bytes of the number: 1, 2 or 4.
        size: u32,
        /// The number of cases.
        count: usize,
    },
    /// The unsigned number of `size` bytes has only the lowest `count` bits.
    Flags {
        /// Bytes of the number: 1, 2 or 4.
        size: u32,
        /// The number of flags.
        count: usize,
    },
    /// The index is the next one of the table of handles.
    Handle,
}

/// The type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// A value of this type.
    Value(TypeIndex),
    /// An offset, a count or a discriminant.
    Number,
}

/// An offset in a message, as an expression: `at + 8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    base: String,
    offset: u32,
}

impl At {
    /// The offset that is the value of `base`.
    pub fn new(base: &str) -> Self {
        At {
            base: base.to_owned(),
            offset: 0,
        }
    }

    /// The offset that is `offset` bytes further.
    pub fn plus(&self, offset: u32) -> Self {
        At {
            base: self.base.clone(),
            offset: self.offset + offset,
        }
    }

    /// The offset of element `index` of the elements of `size` bytes that begin here.
    pub fn element(&self, index: &str, size: u32) -> Self {
        let distance = match size {
            1 => index.to_owned(),
            size => format!("{index} * {size}"),
        };
        At::new(&format!("{self} + {distance}"))
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            0 => f.write_str(&self.base),
            offset => write!(f, "{} + {offset}", self.base),
        }
    }
}

/// How a language writes the steps of a codec. Hooks that return a text return an expression, unless
/// they say otherwise. The hooks for control flow have the form of C by default.
///
/// A dialect has the plan, to look up the types that it is given.
pub trait Dialect {
    /// Begins the routine of a type. Its parameters are the writer or the message, the offset `at`,
    /// and for [`Operation::Put`] the `value`.
    fn begin(&self, operation: Operation, ty: TypeIndex, out: &mut Source);

    /// Ends the routine. [`Operation::Get`] returns `result`.
    fn end(&self, result: Option<&str>, out: &mut Source) {
        if let Some(result) = result {
            out.line(&format!("return {result};"));
        }
        out.close("}");
    }

    /// A call of the routine. `value` is empty unless it puts.
    fn call(&self, operation: Operation, ty: TypeIndex, at: &At, value: &str) -> String;

    /// A statement that evaluates an expression.
    fn statement(&self, expression: &str, out: &mut Source) {
        out.line(&format!("{expression};"));
    }

    /// Declares a variable that is not assigned later. The elements of a new list are set later.
    fn constant(&self, name: &str, ty: Variable, value: &str, out: &mut Source);

    /// Declares a variable that is assigned later.
    fn variable(&self, name: &str, ty: TypeIndex, value: Option<&str>, out: &mut Source);

    /// Assigns to a variable.
    fn assign(&self, name: &str, value: &str, out: &mut Source) {
        out.line(&format!("{name} = {value};"));
    }

    /// A condition: the number of a variable is `number`.
    fn equals(&self, name: &str, number: usize) -> String {
        format!("{name} == {number}")
    }

    /// Begins a block that runs if `condition` is true.
    fn open_if(&self, condition: &str, out: &mut Source) {
        out.open(&format!("if ({condition}) {{"));
    }

    /// Begins a block that runs if the conditions so far are false and `condition` is true.
    fn open_else_if(&self, condition: &str, out: &mut Source) {
        out.reopen(&format!("}} else if ({condition}) {{"));
    }

    /// Begins a block that runs if the conditions so far are false.
    fn open_else(&self, out: &mut Source) {
        out.reopen("} else {");
    }

    /// Begins a block that runs for each `index` from 0 to `count - 1`.
    fn open_loop(&self, index: &str, count: &str, out: &mut Source);

    /// Ends the innermost block.
    fn close(&self, out: &mut Source) {
        out.close("}");
    }

    /// A member of a record or tuple.
    fn member(&self, ty: TypeIndex, number: usize, value: &str) -> String;

    /// A record or tuple with these members.
    fn record(&self, ty: TypeIndex, members: &[String]) -> String;

    /// A condition: an option has a value.
    fn is_some(&self, ty: TypeIndex, value: &str) -> String;

    /// The value of an option that has one.
    fn payload_of_some(&self, ty: TypeIndex, value: &str) -> String;

    /// An option with a value.
    fn some(&self, ty: TypeIndex, payload: &str) -> String;

    /// An option without a value.
    fn none(&self, ty: TypeIndex) -> String;

    /// A condition: a variant or result is of this case.
    fn is_case(&self, ty: TypeIndex, number: usize, value: &str) -> String;

    /// The payload of a variant or result of this case, inside the block of the condition.
    fn payload_of_case(&self, ty: TypeIndex, number: usize, value: &str) -> String;

    /// A variant or result of this case.
    fn case(&self, ty: TypeIndex, number: usize, payload: Option<&str>) -> String;

    /// Fails, because a value is of no case of its variant.
    fn no_case(&self, ty: TypeIndex, value: &str) -> String;

    /// The number of an enum or of flags.
    fn to_number(&self, ty: TypeIndex, value: &str) -> String;

    /// An enum or flags with this number.
    fn of_number(&self, ty: TypeIndex, number: &str) -> String;

    /// The number of elements of a list.
    fn length(&self, value: &str) -> String;

    /// An element of a list.
    fn item(&self, value: &str, index: &str) -> String;

    /// A new list for `count` elements. The elements are set in order.
    fn list(&self, ty: TypeIndex, count: &str) -> String;

    /// Sets an element of a new list.
    fn set_item(&self, list: &str, index: &str, value: &str) -> String;

    /// Fails unless a list has this length. Empty if the type of the list ensures it.
    fn require_length(&self, value: &str, count: u32) -> String;

    /// Puts the value of a record or variant in one step, if the language has it in memory as in a message.
    fn put_whole(&self, _ty: TypeIndex, _at: &At, _value: &str) -> Option<String> {
        None
    }

    /// Puts a value.
    fn put(&self, leaf: Leaf, at: &At, value: &str) -> String;

    /// Puts a list of `count` elements of `size` bytes, whose elements follow. Returns the offset of
    /// the first element.
    fn put_list(&self, at: &At, count: &str, size: u32, align: u32) -> String;

    /// Gets a value.
    fn get(&self, leaf: Leaf, at: &At) -> String;

    /// The offset of the first element of a list in a message.
    fn list_first(&self, at: &At) -> String;

    /// The number of elements of a list in a message.
    fn list_count(&self, at: &At) -> String;

    /// Tests a value in a message.
    fn check(&self, test: Test, at: &At) -> String;
}
