//! CBOR of all types except numbers.

use super::{Cbor, Reader, Refused, Writer};
use crate::ListView;

impl Cbor for bool {
    #[inline]
    fn write(value: bool, to: &mut Writer) {
        to.bool(value);
    }

    #[inline]
    fn read(from: &mut Reader<'_>) -> Result<bool, Refused> {
        from.bool()
    }
}

impl Cbor for char {
    fn write(value: char, to: &mut Writer) {
        to.text(value.encode_utf8(&mut [0; 4]));
    }

    fn read(from: &mut Reader<'_>) -> Result<char, Refused> {
        from.char()
    }
}

impl Cbor for String {
    #[inline]
    fn write(value: &str, to: &mut Writer) {
        to.text(value);
    }

    #[inline]
    fn read(from: &mut Reader<'_>) -> Result<String, Refused> {
        from.text().map(std::borrow::Cow::into_owned)
    }
}

impl<T: Cbor> Cbor for Vec<T> {
    #[inline]
    fn write(list: ListView<'_, T>, to: &mut Writer) {
        T::write_list(list, to);
    }

    #[inline]
    fn read(from: &mut Reader<'_>) -> Result<Vec<T>, Refused> {
        T::read_list(from)
    }
}

impl<T: Cbor, const N: usize> Cbor for [T; N] {
    #[inline]
    fn write(items: [T::View<'_>; N], to: &mut Writer) {
        T::write_items(&items, to);
    }

    fn read(from: &mut Reader<'_>) -> Result<[T; N], Refused> {
        let at = from.at();
        let items = T::read_list(from)?;
        items
            .try_into()
            .map_err(|_| Refused::new(super::Rule::Count, at))
    }
}

impl<T: Cbor> Cbor for Option<T> {
    const NULLABLE: bool = !T::NULLABLE;

    #[inline]
    fn write(value: Option<T::View<'_>>, to: &mut Writer) {
        if T::NULLABLE {
            to.array(usize::from(value.is_some()));
        }
        match value {
            Some(value) => T::write(value, to),
            None if T::NULLABLE => {}
            None => to.null(),
        }
    }

    #[inline]
    fn read(from: &mut Reader<'_>) -> Result<Option<T>, Refused> {
        if !T::NULLABLE {
            return if from.null()? {
                Ok(None)
            } else {
                T::read(from).map(Some)
            };
        }
        let mut items = from.array()?;
        if !from.more(&mut items)? {
            return Ok(None);
        }
        let value = T::read(from)?;
        from.end(items)?;
        Ok(Some(value))
    }

    fn missing() -> Option<Self> {
        Some(None)
    }
}

impl<T: Cbor, E: Cbor> Cbor for Result<T, E> {
    fn write(value: Result<T::View<'_>, E::View<'_>>, to: &mut Writer) {
        to.map(1);
        match value {
            Ok(value) => {
                to.text("ok");
                T::write(value, to);
            }
            Err(error) => {
                to.text("error");
                E::write(error, to);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let case = from.case()?;
        let value = match (&*case.name, case.payload) {
            ("ok", true) => Ok(T::read(from)?),
            ("error", true) => Err(E::read(from)?),
            _ => return Err(case.unknown()),
        };
        case.end(from)?;
        Ok(value)
    }
}

impl Cbor for () {
    const NULLABLE: bool = true;

    fn write(_: (), to: &mut Writer) {
        to.null();
    }

    fn read(from: &mut Reader<'_>) -> Result<(), Refused> {
        if from.null()? {
            Ok(())
        } else {
            Err(from.refused(super::Rule::Type))
        }
    }
}

macro_rules! tuple {
    ($count:literal: $($item:ident $at:tt),*) => {
        impl<$($item: Cbor),*> Cbor for ($($item,)*) {
            fn write(value: Self::View<'_>, to: &mut Writer) {
                to.array($count);
                $( $item::write(value.$at, to); )*
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, Refused> {
                let mut items = from.array()?;
                let value = ($( { from.next(&mut items)?; $item::read(from)? }, )*);
                from.end(items)?;
                Ok(value)
            }
        }
    };
}

tuple!(1: A 0);
tuple!(2: A 0, B 1);
tuple!(3: A 0, B 1, C 2);
tuple!(4: A 0, B 1, C 2, D 3);
tuple!(5: A 0, B 1, C 2, D 3, E 4);
tuple!(6: A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuple!(9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuple!(10: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuple!(11: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuple!(12: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
