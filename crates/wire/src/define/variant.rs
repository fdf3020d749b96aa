//! [`variant!`](crate::variant).

/// Defines a variant: an enum, its view if it has one, and how both are encoded and decoded.
///
/// ```
/// use thalweg_wire as wire;
///
/// wire::variant! {
///     /// An error of a timer.
///     #[derive(Clone, Debug, PartialEq, Eq, Hash)]
///     pub enum TimerError / TimerErrorView<'a> {
///         /// A timer needs a name.
///         NoName = 0 => "no-name",
///         /// There is no such timer.
///         Unknown(String as &'a str) = 1 => "unknown",
///         /// The time is longer than one hour: the requested milliseconds.
///         TooLong(u32) = 2 => "too-long",
///     }
///     tag u8, payload 4, size 12, align 4, hash 0xfacc_7d51_ed6d_e035,
///     impl Cbor, Error, Default = Self::NoName
/// }
///
/// assert_eq!(TimerError::TooLong(5).to_string(), "too long: 5");
/// assert_eq!(TimerError::default(), TimerError::NoName);
/// ```
///
/// - `Case(Type) = number => "wit-name"` is a case. `as ViewType` is the type of its payload in the
///   view. A payload without `as` has the same type in both, and is `Copy`.
/// - A variant without `as` is its own view: `pub enum Shape { .. }`, without a second name.
/// - `tag` is the type of the number, and `payload` the offset of each payload.
/// - The rest is as in [`record!`](crate::record). `Error` displays the name of the case as words,
///   and its payload.
#[macro_export]
macro_rules! variant {
    (
        $(#[$meta:meta])*
        pub enum $name:ident / $view:ident<$a:lifetime> $cases:tt
        tag $tag:ident, payload $payload:literal, size $size:literal, align $align:literal, hash $hash:literal
        $(, impl $($extra:ident $(= $value:expr)?),+)?
    ) => {
        $crate::__variant! { @enum [$(#[$meta])*] $name $cases }
        $crate::__variant! { @view $name $view $a $cases }
        $crate::__variant! { @encode $name ($view, $view<'_>) $tag $payload $cases }

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

        $crate::__variant! { @decode $name $tag $payload $size $align $hash ($view, $a, $view<$a>, $view<'_>) $cases }
        $($( $crate::__variant! { @impl $extra $(= $value)?, $name ($view, $view<'_>) $cases } )+)?
    };
    (
        $(#[$meta:meta])*
        pub enum $name:ident $cases:tt
        tag $tag:ident, payload $payload:literal, size $size:literal, align $align:literal, hash $hash:literal
        $(, impl $($extra:ident $(= $value:expr)?),+)?
    ) => {
        $crate::__variant! { @enum [$(#[$meta])*] $name $cases }
        $crate::__variant! { @encode $name ($name, $name) $tag $payload $cases }
        $crate::__variant! { @decode $name $tag $payload $size $align $hash ($name, 'a, $name) $cases }
        $($( $crate::__variant! { @impl $extra $(= $value)?, $name ($name, $name) $cases } )+)?
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __variant {
    (@enum [$($meta:tt)*] $name:ident {
        $( $(#[$doc:meta])* $case:ident $(($ty:ty $(as $borrowed:ty)?))? = $number:literal
            => $wit:literal $(: $shape:literal)?, )*
    }) => {
        $($meta)*
        pub enum $name {
            $( $(#[$doc])* $case $(($ty))?, )*
        }
    };

    (@view $name:ident $view:ident $a:lifetime {
        $( $(#[$doc:meta])* $case:ident $(($ty:ty $(as $borrowed:ty)?))? = $number:literal
            => $wit:literal $(: $shape:literal)?, )*
    }) => {
        #[doc = concat!("[`", stringify!($name), "`] in place: the view of a reader. A writer may also send it.")]
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum $view<$a> {
            $( $(#[$doc])* $case $(($crate::__view_type!($ty $(as $borrowed)?)))?, )*
        }
    };

    (@encode $name:ident ($view:ident, $view_any:ty) $tag:ident $payload:literal {
        $( $(#[$doc:meta])* $case:ident $(($ty:ty $(as $borrowed:ty)?))? = $number:literal
            => $wit:literal $(: $shape:literal)?, )*
    }) => {
        impl $crate::Encode for $view_any {
            type As = $name;

            #[inline(always)]
            fn encode(&self, to: &mut $crate::Encoder<'_>, at: u32) {
                match self {
                    $( $view::$case $(($crate::__for!($ty, value)))? => {
                        // The tag is already zero.
                        if $number != 0 {
                            to.$tag(at, $number);
                        }
                        $( $crate::__for!($ty, $crate::Encode::encode(value, to, at + $payload)); )?
                    } )*
                }
            }

            #[inline]
            fn handles(&self, given: bool) -> u32 {
                if !<$name as $crate::Decode>::HAS_HANDLES {
                    return 0;
                }
                match self {
                    $( $view::$case $(($crate::__for!($ty, value)))? =>
                        0 $( + $crate::__for!($ty, $crate::Encode::handles(value, given)) )?, )*
                }
            }
        }
    };

    (@decode $name:ident $tag:ident $payload:literal $size:literal $align:literal $hash:literal
        ($view:ident, $a:lifetime, $view_a:ty $(, $view_any:ty)?) {
        $( $(#[$doc:meta])* $case:ident $(($ty:ty $(as $borrowed:ty)?))? = $number:literal
            => $wit:literal $(: $shape:literal)?, )*
    }) => {
        impl $crate::Decode for $name {
            const SIZE: u32 = $size;
            const ALIGN: u32 = $align;
            const SHAPE: $crate::Shape = $crate::Shape::Variant(&[
                $( ($wit, $crate::__payload_shape!(($($ty)?) $($shape)?)), )*
            ]);
            const DEPTH: u32 =
                $crate::define::deepest(&[$($( <$ty as $crate::Decode>::DEPTH, )?)*]) + 1;
            const HAS_HANDLES: bool = false $($( || <$ty as $crate::Decode>::HAS_HANDLES )?)*;

            type View<$a> = $view_a;

            #[inline]
            fn check(from: &mut $crate::Checker<'_>, at: u32) -> ::std::result::Result<(), $crate::Malformed> {
                #[allow(unreachable_patterns, reason = "each number of the type can be a case")]
                match from.bytes().$tag(at) {
                    $( $number => {
                        $( <$ty as $crate::Decode>::check(from, at + $payload)?; )?
                        ::std::result::Result::Ok(())
                    } )*
                    _ => ::std::result::Result::Err(from.broken($crate::Rule::Discriminant, at)),
                }
            }

            #[inline(always)]
            fn view<$a>(from: $crate::Bytes<$a>, at: u32) -> Self::View<$a> {
                $crate::__variant! { @read $view from at $tag $payload
                    $( [$number $case $(($ty))?] )*
                }
            }

            $crate::__variant! { @convert $name $view $(($view_any))? [
                $( [$case $(($ty $(as $borrowed)?))?] )*
            ] }
        }

        // The layout hash of this type in all languages.
        const _: () = assert!(
            <$name as $crate::Decode>::HASH == $hash,
            concat!("the layout hash of `", stringify!($name), "` differs from that of its cases")
        );
    };

    // The check has refused other numbers, so that the first case needs no comparison.
    (@read $view:ident $from:ident $at:ident $tag:ident $payload:literal
        [$first:literal $first_case:ident $(($first_ty:ty))?]
        $( [$number:literal $case:ident $(($ty:ty))?] )*
    ) => {
        match $from.$tag($at) {
            $( $number => $view::$case $((<$ty as $crate::Decode>::view($from, $at + $payload)))?, )*
            _ => $view::$first_case $((<$first_ty as $crate::Decode>::view($from, $at + $payload)))?,
        }
    };

    // The type is its own view.
    (@convert $name:ident $view:ident $cases:tt) => {
        fn owned(view: Self) -> Self {
            view
        }

        #[inline]
        fn as_view(&self) -> Self {
            *self
        }
    };

    (@convert $name:ident $view:ident ($view_any:ty) [
        $( [$case:ident $(($ty:ty $(as $borrowed:ty)?))?] )*
    ]) => {
        fn owned(view: $view_any) -> Self {
            match view {
                $( $view::$case $(($crate::__for!($ty, value)))? =>
                    $name::$case $(($crate::__owned!(value, $ty $(as $borrowed)?)))?, )*
            }
        }

        #[inline]
        fn as_view(&self) -> $view_any {
            match self {
                $( $name::$case $(($crate::__for!($ty, value)))? =>
                    $view::$case $(($crate::__as_view!(*value, $ty $(as $borrowed)?)))?, )*
            }
        }
    };

    (@impl Cbor, $name:ident ($view:ident, $view_any:ty) {
        $( $(#[$doc:meta])* $case:ident $(($ty:ty $(as $borrowed:ty)?))? = $number:literal
            => $wit:literal $(: $shape:literal)?, )*
    }) => {
        impl $crate::cbor::Cbor for $name {
            fn write(view: $view_any, to: &mut $crate::cbor::Writer) {
                match view {
                    $( $view::$case $(($crate::__for!($ty, value)))? => {
                        $( $crate::__for!($ty, to.map(1)); )?
                        to.text($wit);
                        $( <$ty as $crate::cbor::Cbor>::write(value, to); )?
                    } )*
                }
            }

            fn read(from: &mut $crate::cbor::Reader<'_>) -> ::std::result::Result<Self, $crate::cbor::Refused> {
                let case = from.case()?;
                let value = match (&*case.name, case.payload) {
                    $( ($wit, $crate::__has!($($ty)?)) =>
                        $name::$case $((<$ty as $crate::cbor::Cbor>::read(from)?))?, )*
                    _ => return ::std::result::Result::Err(case.unknown()),
                };
                case.end(from)?;
                ::std::result::Result::Ok(value)
            }
        }
    };

    (@impl Error, $name:ident $view:tt {
        $( $(#[$doc:meta])* $case:ident $(($ty:ty $(as $borrowed:ty)?))? = $number:literal
            => $wit:literal $(: $shape:literal)?, )*
    }) => {
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    $( $name::$case $(($crate::__for!($ty, value)))? => $crate::define::display_case(
                        f, $wit, $crate::__some!($($crate::__for!($ty, value))?)
                    ), )*
                }
            }
        }

        impl ::std::error::Error for $name {}
    };

    (@impl Default = $value:expr, $name:ident $view:tt $cases:tt) => {
        $crate::__default! { $name = $value }
    };
}
