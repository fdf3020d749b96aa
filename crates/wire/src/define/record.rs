//! [`record!`](crate::record).

/// Defines a record: a struct, its view if it has one, and how both are encoded and decoded.
///
/// ```
/// use thalweg_wire as wire;
///
/// wire::record! {
///     /// A message, and the delay of its response.
///     #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
///     pub struct Request / RequestView<'a> {
///         pub message: String as &'a str => "message" @ 0;
///         /// Delay in milliseconds.
///         pub delay_ms: u32 => "delay-ms" @ 8;
///     }
///     size 12, align 4, hash 0x6ea6_fbae_2765_315e, impl Cbor
/// }
///
/// let request = RequestView { message: "hello", delay_ms: 5 };
/// let bytes = wire::message::encode(&request, 0x6ea6_fbae_2765_315e, Vec::new())?;
/// let read: Request = wire::message::open(&bytes, 0x6ea6_fbae_2765_315e)?.owned()?;
/// assert_eq!(read, Request { message: "hello".to_owned(), delay_ms: 5 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// - `name: Type => "wit-name" @ offset` is a field. `as ViewType` is its type in the view. A field
///   without `as` has the same type in both, and is `Copy`.
/// - A record whose fields all have no `as` is its own view: `pub struct Tick { .. }`, without a
///   second name.
/// - A semicolon ends a *run*, and commas separate the fields of a run. A run of several fields
///   consists of numbers, which are encoded and decoded together: one bounds check instead of one
///   each. A record of 61 numbers takes 296 instructions through a stream, instead of 2,673.
/// - `size`, `align` and the offsets are in bytes. `hash` is the layout hash, which is the same in
///   all languages. A different hash does not compile.
/// - The traits after `impl` are `Cbor`; `Error`, for the error of a function; and
///   `Default = expression`, if the default cannot be derived.
/// - `"wit-name": "shape" @ offset` has the structure of a field with handles as text, because the
///   Rust type does not have the name of the resource in WIT.
///
/// ```compile_fail,E0080
/// thalweg_wire::record! {
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub struct Point {
///         pub x: i32 => "x" @ 0,
///         pub y: i32 => "y" @ 4;
///     }
///     size 8, align 4, hash 0x1
/// }
/// ```
#[macro_export]
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $name:ident / $view:ident<$a:lifetime> $fields:tt
        size $size:literal, align $align:literal, hash $hash:literal
        $(, impl $($extra:ident $(= $value:expr)?),+)?
    ) => {
        $crate::__record! { @struct [$(#[$meta])*] $name $fields }
        $crate::__record! { @view $name $view $a $fields }
        $crate::__record! { @encode $name [$view<'_>] $fields }

        impl $crate::Encode for $name {
            type As = $name;

            #[inline(always)]
            fn encode(&self, to: &mut $crate::Encoder<'_>, at: u32) {
                $crate::Encode::encode(&$crate::Decode::as_view(self), to, at);
            }

            #[inline]
            fn handles(&self, given: bool) -> u32 {
                $crate::Encode::handles(&$crate::Decode::as_view(self), given)
            }
        }

        $crate::__record! { @decode $name $size $align $hash ($view, $a, $view<$a>, $view<'_>) $fields }
        $($( $crate::__record! { @impl $extra $(= $value)?, $name ($view<'_>) $fields } )+)?
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident $fields:tt
        size $size:literal, align $align:literal, hash $hash:literal
        $(, impl $($extra:ident $(= $value:expr)?),+)?
    ) => {
        $crate::__record! { @struct [$(#[$meta])*] $name $fields }
        $crate::__record! { @encode $name [$name] $fields }
        $crate::__record! { @decode $name $size $align $hash ($name, 'a, $name) $fields }
        $($( $crate::__record! { @impl $extra $(= $value)?, $name ($name) $fields } )+)?
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    (@struct [$($meta:tt)*] $name:ident {
        $($( $(#[$doc:meta])* pub $field:ident: $ty:ty $(as $borrowed:ty)?
            => $wit:literal $(: $shape:literal)? @ $at:literal ),+;)*
    }) => {
        $($meta)*
        pub struct $name {
            $($( $(#[$doc])* pub $field: $ty, )+)*
        }
    };

    (@view $name:ident $view:ident $a:lifetime {
        $($( $(#[$doc:meta])* pub $field:ident: $ty:ty $(as $borrowed:ty)?
            => $wit:literal $(: $shape:literal)? @ $at:literal ),+;)*
    }) => {
        #[doc = concat!("[`", stringify!($name), "`] in place: the view of a reader. A writer may also send it.")]
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $view<$a> {
            $($( $(#[$doc])* pub $field: $crate::__view_type!($ty $(as $borrowed)?), )+)*
        }
    };

    (@encode $name:ident [$view:ty] {
        $($( $(#[$doc:meta])* pub $field:ident: $ty:ty $(as $borrowed:ty)?
            => $wit:literal $(: $shape:literal)? @ $at:literal ),+;)*
    }) => {
        impl $crate::Encode for $view {
            type As = $name;

            #[inline(always)]
            fn encode(&self, to: &mut $crate::Encoder<'_>, at: u32) {
                const FIELDS: &[(u32, u32)] = &[$($( ($at, <$ty as $crate::Decode>::SIZE), )+)*];
                $(
                    $crate::__encode_padding!($name, FIELDS, to, at, [$($at),+][0]);
                    $crate::__encode_run!(self, to, at, $($field: $ty => $at),+);
                )*
                $crate::__encode_padding!($name, FIELDS, to, at, <$name as $crate::Decode>::SIZE);
            }

            #[inline]
            fn handles(&self, given: bool) -> u32 {
                if !<$name as $crate::Decode>::HAS_HANDLES {
                    return 0;
                }
                0 $($( + $crate::Encode::handles(&self.$field, given) )+)*
            }
        }
    };

    (@decode $name:ident $size:literal $align:literal $hash:literal
        ($view:ident, $a:lifetime, $view_a:ty $(, $view_any:ty)?) {
        $($( $(#[$doc:meta])* pub $field:ident: $ty:ty $(as $borrowed:ty)?
            => $wit:literal $(: $shape:literal)? @ $at:literal ),+;)*
    }) => {
        impl $crate::Decode for $name {
            const SIZE: u32 = $size;
            const ALIGN: u32 = $align;
            const SHAPE: $crate::Shape = $crate::Shape::Record(&[
                $($( ($wit, $crate::__shape!($ty $(, $shape)?)), )+)*
            ]);
            const DEPTH: u32 = $crate::define::deepest(&[$($( <$ty as $crate::Decode>::DEPTH, )+)*]) + 1;
            const HAS_HANDLES: bool = false $($( || <$ty as $crate::Decode>::HAS_HANDLES )+)*;
            const IS_DENSE: bool = true $($( && <$ty as $crate::Decode>::IS_DENSE )+)*;

            type View<$a> = $view_a;

            #[inline]
            fn check(from: &mut $crate::Checker<'_>, at: u32) -> ::std::result::Result<(), $crate::Malformed> {
                $( $crate::__check_run!(from, at, $($ty => $at),+); )*
                let _ = (from, at);
                ::std::result::Result::Ok(())
            }

            #[inline(always)]
            fn view<$a>(from: $crate::Bytes<$a>, at: u32) -> Self::View<$a> {
                $( let ($($field,)+) = $crate::__view_run!(from, at, $($ty => $at),+); )*
                $view { $($($field),+),* }
            }

            $crate::__record! { @convert $name $view $(($view_any))? [
                $($( [$field $ty $(as $borrowed)?] )+)*
            ] }
        }

        const _: () = {
            #[derive(Clone, Copy, Debug)]
            #[allow(missing_docs, reason = "the record has the documentation")]
            pub struct Fields {
                $($( pub $field: $crate::Field<$name, $ty>, )+)*
            }

            impl $crate::Record for $name {
                type Fields = Fields;
                const FIELDS: Fields = Fields {
                    $($( $field: $crate::Field::at($at), )+)*
                };
            }
        };

        // The layout hash of this type in all languages.
        const _: () = assert!(
            <$name as $crate::Decode>::HASH == $hash,
            concat!("the layout hash of `", stringify!($name), "` differs from that of its fields")
        );
    };

    // The type is its own view.
    (@convert $name:ident $view:ident $fields:tt) => {
        fn owned(view: Self) -> Self {
            view
        }

        #[inline]
        fn as_view(&self) -> Self {
            *self
        }
    };

    (@convert $name:ident $view:ident ($view_any:ty) [
        $( [$field:ident $ty:ty $(as $borrowed:ty)?] )*
    ]) => {
        fn owned(view: $view_any) -> Self {
            $name { $( $field: $crate::__owned!(view.$field, $ty $(as $borrowed)?), )* }
        }

        #[inline]
        fn as_view(&self) -> $view_any {
            $view { $( $field: $crate::__as_view!(self.$field, $ty $(as $borrowed)?), )* }
        }
    };

    (@impl Cbor, $name:ident ($view:ty) {
        $($( $(#[$doc:meta])* pub $field:ident: $ty:ty $(as $borrowed:ty)?
            => $wit:literal $(: $shape:literal)? @ $at:literal ),+;)*
    }) => {
        impl $crate::cbor::Cbor for $name {
            fn write(view: $view, to: &mut $crate::cbor::Writer) {
                const ORDER: &[u32] = &$crate::define::key_order([$($( ($wit, $at), )+)*]);
                to.map(ORDER.len());
                for field in ORDER {
                    match field {
                        $($( $at => $crate::define::write_field::<$ty>($wit, view.$field, to), )+)*
                        _ => {}
                    }
                }
            }

            fn read(from: &mut $crate::cbor::Reader<'_>) -> ::std::result::Result<Self, $crate::cbor::Refused> {
                $($( let mut $field = ::std::option::Option::None; )+)*
                let mut fields = from.map()?;
                while let ::std::option::Option::Some(key) = from.key(&mut fields)? {
                    match &*key {
                        $($( $wit => from.field(&mut $field)?, )+)*
                        _ => return ::std::result::Result::Err(from.refused($crate::cbor::Rule::Unknown)),
                    }
                }
                ::std::result::Result::Ok($name {
                    $($( $field: from.required($field)?, )+)*
                })
            }
        }
    };

    (@impl Error, $name:ident $view:tt $fields:tt) => {
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(self, f)
            }
        }

        impl ::std::error::Error for $name {}
    };

    (@impl Default = $value:expr, $name:ident $view:tt $fields:tt) => {
        $crate::__default! { $name = $value }
    };
}

/// Zeroes the padding before an offset of a dense record.
#[doc(hidden)]
#[macro_export]
macro_rules! __encode_padding {
    ($name:ident, $fields:ident, $to:ident, $base:ident, $at:expr) => {{
        const PADDING: (u32, usize) = $crate::define::padding($fields, $at);
        if <$name as $crate::Decode>::IS_DENSE && PADDING.1 > 0 {
            $to.words($base + PADDING.0, [0; PADDING.1]);
        }
    }};
}

/// Encodes a run: a field of any type, or several numbers.
#[doc(hidden)]
#[macro_export]
macro_rules! __encode_run {
    ($this:ident, $to:ident, $base:ident, $field:ident: $ty:ty => $at:literal) => {
        $crate::Encode::encode(&$this.$field, $to, $base + $at)
    };
    ($this:ident, $to:ident, $base:ident, $($field:ident: $ty:ty => $at:literal),+) => {{
        const RUN: (u32, usize) =
            $crate::define::run(&[$( ($at, <$ty as $crate::Decode>::SIZE) ),+]);
        let mut words = [0; RUN.1];
        $(
            let place = ($at - RUN.0) as usize;
            words[place..place + <$ty as $crate::Decode>::SIZE as usize]
                .copy_from_slice(&$this.$field.to_le_bytes());
        )+
        $to.words($base + RUN.0, words);
    }};
}

/// Checks a run. Every bit pattern is a number.
#[doc(hidden)]
#[macro_export]
macro_rules! __check_run {
    ($from:ident, $base:ident, $ty:ty => $at:literal) => {
        <$ty as $crate::Decode>::check($from, $base + $at)?
    };
    ($from:ident, $base:ident, $($ty:ty => $at:literal),+) => {};
}

/// The views of a run's fields, as a tuple.
#[doc(hidden)]
#[macro_export]
macro_rules! __view_run {
    ($from:ident, $base:ident, $ty:ty => $at:literal) => {
        (<$ty as $crate::Decode>::view($from, $base + $at),)
    };
    ($from:ident, $base:ident, $($ty:ty => $at:literal),+) => {{
        const RUN: (u32, usize) =
            $crate::define::run(&[$( ($at, <$ty as $crate::Decode>::SIZE) ),+]);
        let words: [u8; RUN.1] = $from.words($base + RUN.0);
        ($( <$ty>::from_le_bytes($crate::word(&words, ($at - RUN.0) as usize)), )+)
    }};
}
