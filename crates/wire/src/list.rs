//! Lists.

use crate::{Bytes, Checker, Decode, Encode, Encoder, Malformed, Shape};
use std::fmt;

/// A list in place: in a message, or a slice that was never encoded. Elements are decoded on
/// access.
///
/// ```
/// use thalweg_wire::ListView;
///
/// let squares = ListView::from(&[1u32, 4, 9]);
/// assert_eq!(squares.len(), 3);
/// assert_eq!(squares.iter().sum::<u32>(), 14);
/// assert_eq!(squares.get(3), None);
/// ```
pub struct ListView<'a, T> {
    source: Source<'a, T>,
}

enum Source<'a, T> {
    Encoded {
        bytes: Bytes<'a>,
        first: u32,
        count: u32,
    },
    Slice(&'a [T]),
}

impl<'a, T: Decode> ListView<'a, T> {
    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        match self.source {
            Source::Encoded { count, .. } => count as usize,
            Source::Slice(items) => items.len(),
        }
    }

    /// Whether the list has no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`, if there is one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<T::View<'a>> {
        match self.source {
            Source::Encoded {
                bytes,
                first,
                count,
            } => (index < count as usize).then(|| T::view(bytes, first + index as u32 * T::SIZE)),
            Source::Slice(items) => items.get(index).map(T::as_view),
        }
    }

    /// The elements, in order.
    #[inline]
    pub fn iter(&self) -> ListIter<'a, T> {
        ListIter {
            list: *self,
            next: 0,
            end: self.len(),
        }
    }

    /// The list as an owned `Vec`.
    pub fn to_vec(&self) -> Vec<T> {
        T::owned_items(*self)
    }

    /// A view of an encoded list.
    fn encode_again(&self, to: &mut Encoder<'_>, at: u32) {
        let Some(mut at) = to.list(at, self.len(), T::SIZE, T::ALIGN) else {
            return;
        };
        for item in self.iter() {
            item.encode(to, at);
            at = at.wrapping_add(T::SIZE);
        }
    }

    /// The bytes of the elements, if the list is in a message.
    #[inline]
    pub(crate) fn encoded(&self) -> Option<&'a [u8]> {
        match self.source {
            Source::Encoded { count: 0, .. } => Some(&[]),
            Source::Encoded {
                bytes,
                first,
                count,
            } => Some(
                bytes
                    .get(first, count * T::SIZE)
                    .expect("a checked list lies inside"),
            ),
            Source::Slice(_) => None,
        }
    }
}

impl<'a> ListView<'a, u8> {
    /// The whole list, without a copy.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        match self.source {
            Source::Slice(items) => items,
            Source::Encoded { .. } => self.encoded().unwrap_or_default(),
        }
    }
}

impl<T> Clone for Source<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Source<'_, T> {}

impl<T> Clone for ListView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ListView<'_, T> {}

impl<T> Default for ListView<'_, T> {
    fn default() -> Self {
        ListView {
            source: Source::Slice(&[]),
        }
    }
}

impl<'a, T> From<&'a [T]> for ListView<'a, T> {
    fn from(items: &'a [T]) -> Self {
        ListView {
            source: Source::Slice(items),
        }
    }
}

impl<'a, T> From<&'a Vec<T>> for ListView<'a, T> {
    fn from(items: &'a Vec<T>) -> Self {
        ListView {
            source: Source::Slice(items),
        }
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for ListView<'a, T> {
    fn from(items: &'a [T; N]) -> Self {
        ListView {
            source: Source::Slice(items),
        }
    }
}

impl<T: Decode> fmt::Debug for ListView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Decode> PartialEq for ListView<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<'a, T: Decode> IntoIterator for ListView<'a, T> {
    type Item = T::View<'a>;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

/// An iterator over a [`ListView`].
pub struct ListIter<'a, T> {
    list: ListView<'a, T>,
    next: usize,
    end: usize,
}

impl<'a, T: Decode> Iterator for ListIter<'a, T> {
    type Item = T::View<'a>;

    #[inline]
    fn next(&mut self) -> Option<T::View<'a>> {
        if self.next == self.end {
            return None;
        }
        self.next += 1;
        self.list.get(self.next - 1)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.next, Some(self.end - self.next))
    }
}

impl<T: Decode> ExactSizeIterator for ListIter<'_, T> {}

impl<T: Decode> DoubleEndedIterator for ListIter<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        self.end -= 1;
        self.list.get(self.end)
    }
}

impl<T: Encode> Encode for [T] {
    type As = Vec<T::As>;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        T::encode_list(self, to, at);
    }

    fn handles(&self, given: bool) -> u32 {
        self.iter().map(|item| item.handles(given)).sum()
    }
}

impl<T: Encode> Encode for Vec<T> {
    type As = Vec<T::As>;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        self.as_slice().encode(to, at);
    }

    fn handles(&self, given: bool) -> u32 {
        self.as_slice().handles(given)
    }
}

impl<T: Decode> Encode for ListView<'_, T> {
    type As = Vec<T>;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        if self.is_empty() {
            return to.empty(at);
        }
        match self.source {
            Source::Slice(items) => items.encode(to, at),
            Source::Encoded { .. } => self.encode_again(to, at),
        }
    }

    fn handles(&self, given: bool) -> u32 {
        self.iter().map(|item| item.handles(given)).sum()
    }
}

/// A list that a function takes as a parameter: a slice, an array, a `Vec` or a [`ListView`], of
/// values that can be written as `T`.
///
/// ```
/// use thalweg_wire::{AsList, message};
///
/// fn written(names: impl AsList<String>) -> Vec<u8> {
///     message::encode(&names.as_list(), 1, Vec::new()).expect("the list is short")
/// }
///
/// let owned = vec!["left".to_owned(), "right".to_owned()];
/// assert_eq!(written(&["left", "right"]), written(&owned));
/// assert_eq!(written(&owned[..1]), written(&["left"]));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of `{T}`",
    note = "a list is a reference to a slice, an array, a `Vec` or a `ListView`"
)]
pub trait AsList<T: Decode> {
    /// The list without its length as part of its type.
    type List: Encode<As = Vec<T>> + ?Sized;

    /// The list, to be encoded.
    fn as_list(&self) -> &Self::List;
}

impl<T: Decode, L: Encode<As = Vec<T>> + ?Sized> AsList<T> for &L {
    type List = L;

    fn as_list(&self) -> &L {
        self
    }
}

impl<T: Decode, E: Encode<As = T>, const N: usize> AsList<T> for &[E; N] {
    type List = [E];

    fn as_list(&self) -> &[E] {
        *self
    }
}

impl<T: Decode> Decode for Vec<T> {
    const SIZE: u32 = 8;
    const ALIGN: u32 = 4;
    const SHAPE: Shape = Shape::Parts(&[Shape::Text("list<"), T::SHAPE, Shape::Text(">")]);
    const HAS_HANDLES: bool = T::HAS_HANDLES;
    const IS_DENSE: bool = true;
    const DEPTH: u32 = T::DEPTH + 1;

    type View<'a> = ListView<'a, T>;

    #[inline]
    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        let (first, count) = from.list(at, T::SIZE, T::ALIGN)?;
        T::check_items(from, first, count)
    }

    #[inline]
    fn view<'a>(from: Bytes<'a>, at: u32) -> ListView<'a, T> {
        ListView {
            source: Source::Encoded {
                bytes: from,
                first: from.u32(at),
                count: from.u32(at + 4),
            },
        }
    }

    fn owned(view: ListView<'_, T>) -> Vec<T> {
        view.to_vec()
    }

    #[inline]
    fn as_view(&self) -> ListView<'_, T> {
        ListView::from(self)
    }
}
