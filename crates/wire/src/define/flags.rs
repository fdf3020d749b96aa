//! [`flags!`](crate::flags).

/// Defines flags: a number with a constant for each bit, and how it is encoded and decoded.
///
/// ```
/// use thalweg_wire as wire;
///
/// wire::flags! {
///     /// What a file allows.
///     pub struct Rights: u8 {
///         READ = 0 => "read",
///         WRITE = 1 => "write",
///         /// Run it as a program.
///         RUN = 2 => "run",
///     }
///     hash 0xc898_15cb_8c38_3c66, impl Cbor
/// }
///
/// let both = Rights::READ | Rights::RUN;
/// assert!(both.contains(Rights::RUN) && !both.contains(Rights::WRITE));
/// assert_eq!(Rights::from_bits(8), None);
/// assert_eq!(wire::cbor::encode(&both, Vec::new()), b"\x82\x64read\x63run");
/// ```
///
/// `NAME = bit => "wit-name"` is a flag. The rest is as in [`record!`](crate::record).
#[macro_export]
macro_rules! flags {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $word:ident $flags:tt
        hash $hash:literal $(, impl $($extra:ident),+)?
    ) => {
        $crate::__flags! { @struct [$(#[$meta])*] $name $word $hash $flags }
        $($( $crate::__flags! { @impl $extra, $name $word $flags } )+)?
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __flags {
    (@struct [$($meta:tt)*] $name:ident $word:ident $hash:literal {
        $( $(#[$doc:meta])* $flag:ident = $bit:literal => $wit:literal, )+
    }) => {
        $($meta)*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name($word);

        impl $name {
            $( $(#[$doc])* pub const $flag: Self = Self(1 << $bit); )+

            /// No flags.
            pub const fn empty() -> Self {
                Self(0)
            }

            /// All flags.
            pub const fn all() -> Self {
                Self(0 $(| 1 << $bit)+)
            }

            /// The bits; the first flag is bit 0.
            pub const fn bits(self) -> $word {
                self.0
            }

            /// The flags of `bits`. `None` if a bit has no flag.
            pub const fn from_bits(bits: $word) -> ::std::option::Option<Self> {
                if bits & !Self::all().0 == 0 {
                    ::std::option::Option::Some(Self(bits))
                } else {
                    ::std::option::Option::None
                }
            }

            /// Whether all of `other` are set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether no flag is set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }

        impl ::std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl ::std::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl ::std::ops::BitAnd for $name {
            type Output = Self;

            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl ::std::ops::Not for $name {
            type Output = Self;

            fn not(self) -> Self {
                Self(!self.0 & Self::all().0)
            }
        }

        impl $crate::Encode for $name {
            type As = $name;

            #[inline]
            fn encode(&self, to: &mut $crate::Encoder<'_>, at: u32) {
                to.$word(at, self.0);
            }
        }

        impl $crate::Decode for $name {
            const SIZE: u32 = size_of::<$word>() as u32;
            const ALIGN: u32 = Self::SIZE;
            const SHAPE: $crate::Shape = $crate::Shape::Flags(&[$($wit),+]);
            const DEPTH: u32 = 0;
            const IS_DENSE: bool = true;

            type View<'a> = $name;

            #[inline]
            fn check(from: &mut $crate::Checker<'_>, at: u32) -> ::std::result::Result<(), $crate::Malformed> {
                const COUNT: u32 = [$($bit),+].len() as u32;
                from.flags(at, u32::from(from.bytes().$word(at)), COUNT)
            }

            #[inline]
            fn view<'a>(from: $crate::Bytes<'a>, at: u32) -> $name {
                $name(from.$word(at))
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
            concat!("the layout hash of `", stringify!($name), "` differs from that of its flags")
        );
    };

    (@impl Cbor, $name:ident $word:ident {
        $( $(#[$doc:meta])* $flag:ident = $bit:literal => $wit:literal, )+
    }) => {
        impl $crate::cbor::Cbor for $name {
            fn write(view: $name, to: &mut $crate::cbor::Writer) {
                to.flags(u32::from(view.0), [$($wit),+].into_iter());
            }

            fn read(from: &mut $crate::cbor::Reader<'_>) -> ::std::result::Result<Self, $crate::cbor::Refused> {
                let bits = from.flags(|name| match name {
                    $( $wit => ::std::option::Option::Some($bit), )+
                    _ => ::std::option::Option::None,
                });
                bits.map(|bits| $name(bits as $word))
            }
        }
    };

    (@impl Error, $name:ident $word:ident $flags:tt) => {
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(self, f)
            }
        }

        impl ::std::error::Error for $name {}
    };
}
