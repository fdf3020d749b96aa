//! Values in `scenarios.json`: see `conformance/README.md`.

use serde_json::{Map, Value, json};
use thalweg::port::NoError;
use thalweg_conformance::conformance::{
    Color, Days, Failure, Fixed, Item, Keywords, MaybeCounter, Nested, Point, Rights, Scalars,
    Shape, Wide,
};

/// Converts to and from JSON.
pub trait Json: Sized {
    fn read(from: &Value) -> Self;
    fn show(&self) -> Value;

    fn read_list(from: &Value) -> Vec<Self> {
        if let Some((item, count)) = repeated(from) {
            return (0..count).map(|_| Self::read(item)).collect();
        }
        from.as_array()
            .unwrap_or_else(|| panic!("a list: {from}"))
            .iter()
            .map(Self::read)
            .collect()
    }

    fn show_list(list: &[Self]) -> Value {
        list.iter().map(Self::show).collect()
    }
}

fn repeated(from: &Value) -> Option<(&Value, usize)> {
    Some((from.get("repeat")?, from.get("count")?.as_u64()? as usize))
}

fn text(from: &Value) -> String {
    match repeated(from) {
        Some((text, count)) => text.as_str().expect("a text").repeat(count),
        None => from
            .as_str()
            .unwrap_or_else(|| panic!("a text: {from}"))
            .to_owned(),
    }
}

/// Whether the result is the expected value.
pub fn same<T: Json>(came: &T, written: &Value) -> bool {
    came.show() == T::read(written).show()
}

pub fn unhex(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex"))
        .collect()
}

macro_rules! numbers {
    ($($ty:ty)*) => {
        $(impl Json for $ty {
            fn read(from: &Value) -> Self {
                from.as_i64().and_then(|n| n.try_into().ok()).unwrap_or_else(|| panic!("a number: {from}"))
            }
            fn show(&self) -> Value {
                json!(self)
            }
        })*
    };
}

numbers!(i8 i16 i32 u16 u32);

impl Json for u8 {
    fn read(from: &Value) -> Self {
        from.as_u64()
            .and_then(|n| n.try_into().ok())
            .unwrap_or_else(|| panic!("a byte: {from}"))
    }
    fn show(&self) -> Value {
        json!(self)
    }
    fn read_list(from: &Value) -> Vec<Self> {
        unhex(&text(from))
    }
    fn show_list(list: &[Self]) -> Value {
        json!(
            list.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        )
    }
}

/// Types that JSON represents as strings.
macro_rules! texts {
    ($($ty:ty: $read:expr, $show:expr;)*) => {
        $(impl Json for $ty {
            fn read(from: &Value) -> Self {
                #[allow(clippy::redundant_closure_call)]
                $read(text(from))
            }
            fn show(&self) -> Value {
                #[allow(clippy::redundant_closure_call)]
                Value::String($show(self))
            }
        })*
    };
}

texts! {
    u64: |text: String| text.parse().expect("a number"), u64::to_string;
    i64: |text: String| text.parse().expect("a number"), i64::to_string;
    f32: |text: String| f32::from_bits(u32::from_str_radix(&text[2..], 16).expect("bits")), |f: &f32| format!("{:#010x}", f.to_bits());
    f64: |text: String| f64::from_bits(u64::from_str_radix(&text[2..], 16).expect("bits")), |f: &f64| format!("{:#018x}", f.to_bits());
    char: |text: String| text.parse().expect("one character"), char::to_string;
    String: |text: String| text, String::clone;
}

impl Json for bool {
    fn read(from: &Value) -> Self {
        from.as_bool().unwrap_or_else(|| panic!("a bool: {from}"))
    }
    fn show(&self) -> Value {
        json!(self)
    }
}

impl Json for NoError {
    fn read(from: &Value) -> Self {
        panic!("an error where there is none: {from}")
    }
    fn show(&self) -> Value {
        match *self {}
    }
}

impl Json for MaybeCounter {
    fn read(from: &Value) -> Self {
        panic!("what came has no form in JSON: {from}")
    }
    fn show(&self) -> Value {
        Value::Null
    }
}

impl Json for () {
    fn read(from: &Value) -> Self {
        assert!(from.is_null(), "nothing: {from}");
    }
    fn show(&self) -> Value {
        Value::Null
    }
}

impl<T: Json> Json for Vec<T> {
    fn read(from: &Value) -> Self {
        T::read_list(from)
    }
    fn show(&self) -> Value {
        T::show_list(self)
    }
}

impl<T: Json, const N: usize> Json for [T; N] {
    fn read(from: &Value) -> Self {
        let list = T::read_list(from);
        list.try_into()
            .unwrap_or_else(|_| panic!("{N} elements: {from}"))
    }
    fn show(&self) -> Value {
        T::show_list(self)
    }
}

impl<T: Json> Json for Option<T> {
    fn read(from: &Value) -> Self {
        (!from.is_null()).then(|| T::read(&from["some"]))
    }
    fn show(&self) -> Value {
        self.as_ref()
            .map_or(Value::Null, |value| json!({ "some": value.show() }))
    }
}

impl<T: Json, E: Json> Json for Result<T, E> {
    fn read(from: &Value) -> Self {
        match from.get("error") {
            Some(error) => Err(E::read(error)),
            None => Ok(T::read(&from["ok"])),
        }
    }
    fn show(&self) -> Value {
        match self {
            Ok(value) => json!({ "ok": value.show() }),
            Err(error) => json!({ "error": error.show() }),
        }
    }
}

macro_rules! tuple {
    ($($name:ident $at:tt),*) => {
        impl<$($name: Json),*> Json for ($($name,)*) {
            fn read(from: &Value) -> Self {
                ($($name::read(&from[$at]),)*)
            }
            fn show(&self) -> Value {
                json!([$(self.$at.show()),*])
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2, D 3);

/// The WIT name of a Rust name.
fn wit(name: &str) -> String {
    name.trim_start_matches("r#")
        .trim_end_matches('_')
        .replace('_', "-")
        .to_lowercase()
}

macro_rules! record {
    ($name:ident { $($field:ident),* }) => {
        impl Json for $name {
            fn read(from: &Value) -> Self {
                $name { $($field: Json::read(&from[wit(stringify!($field))])),* }
            }
            fn show(&self) -> Value {
                let mut fields = Map::new();
                $(fields.insert(wit(stringify!($field)), self.$field.show());)*
                Value::Object(fields)
            }
        }
    };
}

record!(Point { x, y });
record!(Scalars {
    a_bool,
    a_u64,
    a_u8,
    a_u16,
    a_s8,
    a_u32,
    a_s16,
    a_f64,
    a_char,
    a_s64,
    a_f32,
    a_s32
});
record!(Nested {
    text,
    bytes,
    names,
    grid,
    maybe,
    twice,
    outcomes,
    pairs,
    shapes,
    color,
    rights,
    aliased
});
record!(Keywords {
    r#type,
    r#match,
    r#async,
    self_,
    crate_,
    super_,
    r#fn,
    class,
    def,
    lambda,
    none,
    r#return,
    r#struct,
    int,
    default,
    register,
    r#static,
    import,
    from,
    r#yield,
    r#await,
    nullptr,
    errno
});
record!(Fixed {
    flag,
    key,
    place,
    names,
    grid,
    colors,
    maybe,
    corners
});
record!(Item {
    number,
    name,
    tags,
    blob
});

macro_rules! variant {
    ($name:ident { $($case:ident($payload:ident)),* ; $bare:ident }) => {
        impl Json for $name {
            fn read(from: &Value) -> Self {
                let case = from["case"].as_str().expect("a case");
                $(if case == wit(stringify!($case)) {
                    return $name::$case(Json::read(&from["value"]));
                })*
                assert_eq!(case, wit(stringify!($bare)));
                $name::$bare
            }
            fn show(&self) -> Value {
                match self {
                    $($name::$case($payload) => json!({ "case": wit(stringify!($case)), "value": $payload.show() }),)*
                    $name::$bare => json!({ "case": wit(stringify!($bare)) }),
                }
            }
        }
    };
}

variant!(Shape { Circle(v), Line(v), Label(v), Polygon(v), Static(v); Nothing });
variant!(Failure { Code(v), At(v); Unknown });

impl Json for Color {
    fn read(from: &Value) -> Self {
        let cases = [Color::Red, Color::Green, Color::Bool];
        cases
            .into_iter()
            .find(|case| case.show() == *from)
            .unwrap_or_else(|| panic!("a color: {from}"))
    }
    fn show(&self) -> Value {
        json!(wit(&format!("{self:?}")))
    }
}

/// Flags by the names of their bits.
macro_rules! flags {
    ($name:ident, $bits:ty, $names:expr) => {
        impl Json for $name {
            fn read(from: &Value) -> Self {
                let names = $names;
                let set: Vec<String> = from
                    .as_array()
                    .expect("flags")
                    .iter()
                    .map(String::read)
                    .collect();
                let bits = names
                    .iter()
                    .enumerate()
                    .filter(|(_, name)| set.contains(&name.to_string()));
                $name::from_bits(bits.map(|(bit, _)| 1 << bit).sum::<$bits>())
                    .expect("flags that are")
            }
            fn show(&self) -> Value {
                let names = $names;
                let set = names
                    .iter()
                    .enumerate()
                    .filter(|(bit, _)| self.bits() >> bit & 1 == 1);
                set.map(|(_, name)| json!(name.to_string())).collect()
            }
        }
    };
}

flags!(Rights, u8, ["read", "write", "record"]);
flags!(
    Days,
    u16,
    [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "holiday",
        "workday"
    ]
);
flags!(
    Wide,
    u32,
    (0..32).map(|bit| format!("b{bit}")).collect::<Vec<_>>()
);
