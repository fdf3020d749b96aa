//! [`enumeration!`](crate::enumeration).

/// Defines an enum: a type whose cases have no payload, and how it is encoded and decoded.
///
/// ```
/// use thalweg_wire as wire;
///
/// wire::enumeration! {
///     /// A colour.
///     #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
///     pub enum Color {
///         /// The default.
///         Red = 0 => "red",
///         Green = 1 => "green",
///         Blue = 2 => "blue",
///     }
///     tag u8, hash 0xe241_0692_2a2b_e16c, impl Cbor, Default = Self::Red
/// }
///
/// assert_eq!(wire::cbor::encode(&Color::Green, Vec::new()), b"\x65green");
/// ```
///
/// `Case = number => "wit-name"` is a case, and `tag` the type of the number. The rest is as in
/// [`variant!`](crate::variant).
#[macro_export]
macro_rules! enumeration {
    (
        $(#[$meta:meta])*
        pub enum $name:ident $cases:tt
        tag $tag:ident, hash $hash:literal
        $(, impl $($extra:ident $(= $value:expr)?),+)?
    ) => {
        $crate::__enumeration! { @enum [$(#[$meta])*] $name $tag $hash $cases }
        $($( $crate::__enumeration! { @impl $extra $(= $value)?, $name $cases } )+)?
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __enumeration {
    (@enum [$($meta:tt)*] $name:ident $tag:ident $hash:literal {
        $( $(#[$doc:meta])* $case:ident = $number:literal => $wit:literal, )+
    }) => {
        $($meta)*
        #[repr($tag)]
        pub enum $name {
            $( $(#[$doc])* $case = $number, )+
        }

        impl $crate::Encode for $name {
            type As = $name;

            #[inline]
            fn encode(&self, to: &mut $crate::Encoder<'_>, at: u32) {
                to.$tag(at, *self as $tag);
            }
        }

        impl $crate::Decode for $name {
            const SIZE: u32 = size_of::<$tag>() as u32;
            const ALIGN: u32 = Self::SIZE;
            const SHAPE: $crate::Shape = $crate::Shape::Enum(&[$($wit),+]);
            const DEPTH: u32 = 0;
            const IS_DENSE: bool = true;

            type View<'a> = $name;

            #[inline]
            fn check(from: &mut $crate::Checker<'_>, at: u32) -> ::std::result::Result<(), $crate::Malformed> {
                const LAST: usize = [$($number),+].len() - 1;
                if from.bytes().$tag(at) as usize > LAST {
                    return ::std::result::Result::Err(from.broken($crate::Rule::Discriminant, at));
                }
                ::std::result::Result::Ok(())
            }

            #[inline]
            fn view<'a>(from: $crate::Bytes<'a>, at: u32) -> $name {
                // The check has refused other numbers, so that the last case needs no comparison.
                const CASES: &[$name] = &[$($name::$case),+];
                const LAST: $name = CASES[CASES.len() - 1];
                match from.$tag(at) {
                    $( $number if $number as usize != CASES.len() - 1 => $name::$case, )+
                    _ => LAST,
                }
            }

            #[inline]
            fn owned(view: $name) -> $name {
                view
            }

            #[inline]
            fn as_view(&self) -> $name {
                *self
            }
        }

        // The layout hash of this type in all languages.
        const _: () = assert!(
            <$name as $crate::Decode>::HASH == $hash,
            concat!("the layout hash of `", stringify!($name), "` differs from that of its cases")
        );
    };

    (@impl Cbor, $name:ident {
        $( $(#[$doc:meta])* $case:ident = $number:literal => $wit:literal, )+
    }) => {
        impl $crate::cbor::Cbor for $name {
            fn write(view: $name, to: &mut $crate::cbor::Writer) {
                to.text(match view {
                    $( $name::$case => $wit, )+
                });
            }

            fn read(from: &mut $crate::cbor::Reader<'_>) -> ::std::result::Result<Self, $crate::cbor::Refused> {
                from.name(|name| match name {
                    $( $wit => ::std::option::Option::Some($name::$case), )+
                    _ => ::std::option::Option::None,
                })
            }
        }
    };

    (@impl Error, $name:ident {
        $( $(#[$doc:meta])* $case:ident = $number:literal => $wit:literal, )+
    }) => {
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let name = match self {
                    $( $name::$case => $wit, )+
                };
                $crate::define::display_case(f, name, ::std::option::Option::None)
            }
        }

        impl ::std::error::Error for $name {}
    };

    (@impl Default = $value:expr, $name:ident $cases:tt) => {
        $crate::__default! { $name = $value }
    };
}
