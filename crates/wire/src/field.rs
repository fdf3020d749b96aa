//! The places of a record's fields, for writing a record field by field.

use std::fmt;
use std::marker::PhantomData;

use crate::Decode;

/// A record, whose fields have names. [`record!`](crate::record) implements it.
pub trait Record: Decode {
    /// A struct with one [`Field`] for each field, under the field's name.
    type Fields;

    /// The places of the fields.
    ///
    /// ```
    /// use thalweg_wire::Record;
    ///
    /// thalweg_wire::record! {
    ///     #[derive(Clone, Copy, Debug, PartialEq)]
    ///     pub struct Point {
    ///         pub x: i32 => "x" @ 0,
    ///         pub y: i32 => "y" @ 4;
    ///     }
    ///     size 8, align 4, hash 0x8890_9ce0_0e86_9dbf
    /// }
    ///
    /// assert_eq!(Point::FIELDS.y.offset(), 4);
    /// ```
    const FIELDS: Self::Fields;
}

/// The place of a field of type `F` in a record of type `R`.
pub struct Field<R, F> {
    at: u32,
    types: PhantomData<fn() -> (R, F)>,
}

impl<R: Decode, F: Decode> Field<R, F> {
    /// The field at an offset, for [`record!`](crate::record).
    ///
    /// # Panics
    /// The field is not inside the record.
    #[doc(hidden)]
    pub const fn at(at: u32) -> Self {
        assert!(at <= R::SIZE && F::SIZE <= R::SIZE - at);
        Self {
            at,
            types: PhantomData,
        }
    }

    /// Offset in bytes from the beginning of the record.
    #[inline(always)]
    pub const fn offset(self) -> u32 {
        self.at
    }

    /// A field of this field, which is a record itself.
    ///
    /// ```
    /// # use thalweg_wire::{Field, Record};
    /// fn nested<R: Record, S: Record, F: thalweg_wire::Decode>(
    ///     outer: Field<R, S>,
    ///     inner: Field<S, F>,
    /// ) -> Field<R, F> {
    ///     outer.then(inner)
    /// }
    /// ```
    #[inline(always)]
    pub const fn then<G: Decode>(self, inner: Field<F, G>) -> Field<R, G> {
        Field {
            at: self.at + inner.at,
            types: PhantomData,
        }
    }
}

impl<R, F> Clone for Field<R, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, F> Copy for Field<R, F> {}

impl<R, F> fmt::Debug for Field<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field({})", self.at)
    }
}
