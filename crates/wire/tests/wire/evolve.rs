//! Schema evolution: one version of a type writes, another one reads.

use proptest::prelude::*;
use thalweg_wire::describe::Type;
use thalweg_wire::evolve::{Conversion, Converted, Unconverted, fits};
use thalweg_wire::{Bytes, Decode, Encode, Encoder, Handle, Rule, Shape, message};

fn ty(text: &str) -> Type<'_> {
    Type::parse(text).unwrap()
}

fn conversion<'a>(from: &'a str, to: &'a str) -> Conversion<'a> {
    Conversion::new(ty(from), ty(to)).unwrap()
}

/// Writes `value` as `from` and converts it to `to`.
fn converted<'a, T: Encode>(from: &'a str, to: &'a str, value: &T) -> Converted<'a> {
    let old = message::encode(value, Shape::hash_of(from), Vec::new()).unwrap();
    let made = conversion(from, to).convert(&old).unwrap();
    // The result is a well-formed message of the other type.
    let itself = conversion(to, to).convert(&made.message).unwrap();
    assert_eq!(itself.message, made.message);
    made
}

/// Like [`converted`], and reads the result as a `U`, which has the layout of `to`.
fn read<T: Encode, U: Decode>(from: &str, to: &str, value: &T) -> U {
    let made = converted(from, to, value);
    assert_eq!(made.dropped, []);
    let opened = message::open(&made.message, Shape::hash_of(to)).unwrap();
    opened.owned().unwrap()
}

fn differs(reader: &str, writer: &str) -> String {
    fits(&ty(reader), &ty(writer)).unwrap_err().to_string()
}

#[test]
fn field_unknown_to_the_reader_is_left_out() {
    let (newer, older) = (
        "record{name:string,rank:u32,tags:list<string>}",
        "record{name:string}",
    );
    let value = (
        "left".to_owned(),
        7u32,
        vec!["a".to_owned(), "b".to_owned()],
    );
    assert_eq!(
        read::<_, (String,)>(newer, older, &value),
        ("left".to_owned(),)
    );
}

#[test]
fn field_missing_from_the_writer_is_zero() {
    let older = "record{name:string}";
    let newer =
        "record{name:string,rank:u32,is:bool,text:string,all:list<u64>,maybe:option<u8>,end:char}";
    type Newer = (String, u32, bool, String, Vec<u64>, Option<u8>, char);
    let seen: Newer = read(older, newer, &("left".to_owned(),));
    assert_eq!(
        seen,
        (
            "left".to_owned(),
            0,
            false,
            String::new(),
            vec![],
            None,
            '\0'
        )
    );
    let newer = "record{name:string,ended:result<u8,string>}";
    let seen: (String, Result<u8, String>) = read(older, newer, &("left".to_owned(),));
    assert_eq!(seen, ("left".to_owned(), Ok(0)));
}

#[test]
fn nested_types_grow_in_place() {
    let (older, newer) = (
        "list<tuple<option<record{x:u8}>,result<record{y:string},u8>>>",
        "list<tuple<option<record{x:u8,z:u64}>,result<record{y:string,w:u16},u8>>>",
    );
    type Older = (Option<(u8,)>, Result<(String,), u8>);
    type Newer = (Option<(u8, u64)>, Result<(String, u16), u8>);
    let old: Vec<Older> = vec![
        (Some((3,)), Ok(("first".to_owned(),))),
        (None, Err(9)),
        (Some((4,)), Ok((String::new(),))),
    ];
    let seen: Vec<Newer> = read(older, newer, &old);
    let expected: Vec<Newer> = vec![
        (Some((3, 0)), Ok(("first".to_owned(), 0))),
        (None, Err(9)),
        (Some((4, 0)), Ok((String::new(), 0))),
    ];
    assert_eq!(seen, expected);
    assert_eq!(read::<_, Vec<Older>>(newer, older, &expected), old);
    let arrays = ("list<record{x:u8},3>", "list<record{x:u8,y:u32},3>");
    let seen: [(u8, u32); 3] = read(arrays.0, arrays.1, &[(1u8,), (2,), (3,)]);
    assert_eq!(seen, [(1, 0), (2, 0), (3, 0)]);
}

/// Discriminants are numbers of one byte.
#[test]
fn case_unknown_to_the_reader_becomes_unknown() {
    let (older, newer) = ("enum{unknown,red,green}", "enum{unknown,red,green,blue}");
    for (written, seen) in [(0u8, 0u8), (1, 1), (2, 2), (3, 0)] {
        assert_eq!(read::<_, u8>(newer, older, &written), seen);
    }
    assert_eq!(read::<_, u8>(older, newer, &2u8), 2);
    let (older, newer) = ("variant{a(u8),unknown}", "variant{a(u8),unknown,b(string)}");
    // {u8 tag, then u8 | {u32, u32}}: as a tuple of the tag and eight bytes aligned to four.
    let b = (2u8, "text".to_owned());
    assert_eq!(read::<_, (u8, u8)>(newer, older, &b), (1, 0));
    let a: (u8, u32, u32) = read(older, newer, &(0u8, 9u8));
    assert_eq!(a, (0, 9, 0));
}

#[test]
fn new_field_defaults_to_unknown_if_its_type_has_it() {
    let older = "record{x:u8}";
    let seen: (u8, u8) = read(older, "record{x:u8,c:enum{red,unknown}}", &(5u8,));
    assert_eq!(seen, (5, 1));
    let newer = "record{x:u8,c:record{v:variant{a(u8),b,unknown}},d:list<enum{red,unknown},2>}";
    let seen: (u8, (u8, u8), [u8; 2]) = read(older, newer, &(5u8,));
    assert_eq!(seen, (5, (2, 0), [1, 1]));
}

#[test]
fn flags_unknown_to_the_reader_are_left_out() {
    let newer = "flags{a,b,c,d,e,f,g,h,i}";
    assert_eq!(read::<_, u8>(newer, "flags{a,b}", &0b1_0000_0011u16), 3);
    assert_eq!(read::<_, u16>("flags{a,b}", newer, &2u8), 2);
    assert_eq!(read::<_, u8>("flags{a,b,c}", "flags{a,b}", &0b111u8), 0b11);
}

#[test]
fn unrelated_types_differ_at_a_named_place() {
    for (reader, writer, what) in [
        (
            "record{a:u8,b:u8}",
            "record{b:u8,a:u8}",
            "`b` is `a` on the other side",
        ),
        (
            "record{a:record{b:u8}}",
            "record{a:record{b:u16}}",
            "`a.b` is `u8` on one side, `u16` on the other",
        ),
        (
            "enum{a}",
            "enum{a,b}",
            "`b` is not known to the reader, whose type has no case `unknown`",
        ),
        (
            "variant{a,unknown(u8)}",
            "variant{a,unknown(u8),b}",
            "`b` is not known to the reader, whose type has no case `unknown`",
        ),
        (
            "variant{a}",
            "variant{a(u8)}",
            "`a` has a payload on one side only",
        ),
        (
            "tuple<u8>",
            "tuple<u8,u8>",
            "it is `tuple<u8>` on one side, `tuple<u8,u8>` on the other",
        ),
        (
            "list<u8,2>",
            "list<u8,3>",
            "it is `list<u8,2>` on one side, `list<u8,3>` on the other",
        ),
        (
            "list<record{}>",
            "list<record{a:u8}>",
            "it is a list of what has no bytes on one side only",
        ),
        (
            "option<u8>",
            "u8",
            "it is `option<u8>` on one side, `u8` on the other",
        ),
        (
            "own<a>",
            "borrow<a>",
            "it is `own<a>` on one side, `borrow<a>` on the other",
        ),
        (
            "stream<u8>",
            "stream<u16>",
            "it is `u8` on one side, `u16` on the other",
        ),
        (
            "variant{ok(u8),error(u8)}",
            "result<u8,u8>",
            "it is `variant{ok(u8),error(u8)}` on one side, `result<u8,u8>` on the other",
        ),
        (
            "record{a:u8,h:record{r:own<r>}}",
            "record{a:u8}",
            "`h` is on the reader's side only, and has a handle, which has no value to begin with",
        ),
        (
            "record{a:u8,h:variant{x(own<r>),y}}",
            "record{a:u8}",
            "`h` is on the reader's side only, and has a handle, which has no value to begin with",
        ),
    ] {
        assert_eq!(differs(reader, writer), what, "{writer} as {reader}");
    }
    // A missing optional handle is `none`.
    for newer in [
        "record{h:option<own<r>>}",
        "record{h:list<own<r>>}",
        "record{h:variant{x(own<r>),unknown}}",
    ] {
        fits(&ty(newer), &ty("record{}")).unwrap();
    }
}

#[test]
fn handles_of_kept_fields_are_kept() {
    let newer = "record{a:list<record{h:own<r>,more:option<own<r>>}>,b:own<r>}";
    let older = "record{a:list<record{h:own<r>}>}";
    let h = |number| Handle(number);
    let value = (
        vec![(h(11), Some(h(12))), (h(13), None), (h(14), Some(h(15)))],
        h(16),
    );
    let made = converted(newer, older, &value);
    assert_eq!(made.dropped, [h(12), h(15), h(16)]);
    let opened = message::open(&made.message, Shape::hash_of(older)).unwrap();
    let kept: (Vec<(Handle,)>,) = opened.owned().unwrap();
    assert_eq!(kept.0, [(h(11),), (h(13),), (h(14),)]);
}

#[test]
fn message_of_another_type_is_an_error() {
    let conversion = conversion("record{a:string}", "record{a:string,b:u8}");
    let good = message::encode(
        &("text".to_owned(),),
        Shape::hash_of("record{a:string}"),
        Vec::new(),
    );
    let good = good.unwrap();
    for cut in 0..good.len() {
        let Err(Unconverted::Message(_)) = conversion.convert(&good[..cut]) else {
            panic!("cut at {cut}");
        };
    }
    let mut other = good.clone();
    other[4] ^= 1;
    let refused = conversion.convert(&other).unwrap_err();
    assert!(matches!(refused, Unconverted::Message(it) if it.rule == Rule::Layout));
}

type Older = Vec<(u8, Option<(String, u64)>)>;
const OLDER: &str = "list<record{a:u8,b:option<record{c:string,d:u64}>}>";
const NEWER: &str = "list<record{a:u8,b:option<record{c:string,d:u64,e:list<string>}>,f:char}>";

proptest! {
    #[test]
    fn conversion_there_and_back_keeps_the_value(value: Older) {
        let old = message::encode(&value, Shape::hash_of(OLDER), Vec::new()).unwrap();
        let new = conversion(OLDER, NEWER).convert(&old).unwrap();
        let back = conversion(NEWER, OLDER).convert(&new.message).unwrap();
        prop_assert_eq!(back.message, old);
    }

    #[test]
    fn corrupted_message_never_panics(value: Older, changes: Vec<(prop::sample::Index, u8)>) {
        let mut old = message::encode(&value, Shape::hash_of(OLDER), Vec::new()).unwrap();
        for (at, byte) in changes {
            let at = at.index(old.len());
            old[at] = byte;
        }
        if let Ok(new) = conversion(OLDER, NEWER).convert(&old) {
            conversion(NEWER, OLDER).convert(&new.message).unwrap();
        }
    }
}

/// A batch of records: slots, then tails, as in [`Bytes`].
struct Records {
    slots: Vec<u8>,
    tails: Vec<u8>,
}

impl Records {
    fn of<T: Encode<As = T> + Decode>(values: &[T]) -> Self {
        let stride = T::SIZE.max(1);
        let mut slots = vec![0; stride as usize * values.len()];
        let at = (slots.len() as u32).next_multiple_of(8);
        let mut tails = Vec::new();
        for (value, number) in values.iter().zip(0u32..) {
            let tails_at = at + tails.len() as u32;
            let mut room = vec![0; Encoder::measure(value, tails_at).unwrap() as usize];
            let slot = &mut slots[(number * stride) as usize..][..T::SIZE as usize];
            let mut encoder = Encoder::fixed(slot, number * stride, &mut room, tails_at);
            value.encode(&mut encoder, number * stride);
            encoder.finish_record().unwrap();
            tails.extend(room);
        }
        Self { slots, tails }
    }

    fn bytes(&self) -> Bytes<'_> {
        let at = (self.slots.len() as u32).next_multiple_of(8);
        Bytes::batch(&self.slots, 0, &self.tails, at)
    }

    /// Converts all records except the first `skip`. The size of their tails is computed first.
    fn converted(&self, conversion: &Conversion<'_>, stride: u32, skip: u32, count: u32) -> Self {
        let mut slots = vec![0; (conversion.stride() * count) as usize];
        let at = (slots.len() as u32).next_multiple_of(8);
        let mut into = |tails: &mut Vec<u8>| {
            let to = Encoder::fixed(&mut slots, 0, tails, at);
            conversion.records(self.bytes(), skip * stride, count, to)
        };
        let mut tails = Vec::new();
        if let Err(room) = into(&mut tails) {
            tails.resize(room.needed.unwrap() as usize, 0);
            let used = into(&mut tails).unwrap();
            assert_eq!(used as usize, tails.len());
        }
        Self { slots, tails }
    }
}

type OldRecord = (u8, String, Vec<(u16,)>);
type NewRecord = (u8, String, Vec<(u16, u32)>, u64, Vec<String>);

#[test]
fn batch_conversion_can_start_at_any_record() {
    let newer = "record{a:u8,b:string,c:list<record{x:u16,y:u32}>,d:u64,e:list<string>}";
    let older = "record{a:u8,b:string,c:list<record{x:u16}>}";
    let all: Vec<NewRecord> = (0..5u8)
        .map(|n| {
            let text = "x".repeat(n.into());
            let list = (0..n).map(|x| (x.into(), 9)).collect();
            (n, text.clone(), list, 1 << 40, vec![text; n.into()])
        })
        .collect();
    let old = Records::of(&all).converted(&conversion(newer, older), NewRecord::SIZE, 2, 3);
    for (number, all) in (0u32..).zip(&all[2..]) {
        let view = OldRecord::view(old.bytes(), number * OldRecord::SIZE);
        let (a, b, c) = OldRecord::owned(view);
        let known = all.2.iter().map(|(x, _)| (*x,)).collect::<Vec<_>>();
        assert_eq!((a, &b, c), (all.0, &all.1, known));
    }
    // The same three records in the other direction.
    let new = old.converted(&conversion(older, newer), OldRecord::SIZE, 1, 2);
    for (number, all) in (0u32..).zip(&all[3..]) {
        let view = NewRecord::view(new.bytes(), number * NewRecord::SIZE);
        let (a, b, c, d, e) = NewRecord::owned(view);
        let known = all.2.iter().map(|(x, _)| (*x, 0)).collect::<Vec<_>>();
        assert_eq!((a, &b, c, d, e), (all.0, &all.1, known, 0, vec![]));
    }
}

#[test]
fn records_of_size_zero_can_grow_and_shrink() {
    let (none, some) = ("record{}", "record{a:u32}");
    let three = Records::of(&[(7u32,), (8,), (9,)]);
    let nothing = three.converted(&conversion(some, none), 4, 0, 3);
    assert_eq!((nothing.slots.len(), nothing.tails.len()), (3, 0));
    let zeros = nothing.converted(&conversion(none, some), 1, 0, 3);
    assert_eq!(zeros.slots, [0; 12]);
}

#[test]
fn records_too_large_for_a_batch_are_an_error() {
    // Each of 30,000 records grows by 80,000 bytes, but offsets are limited to 2 GiB.
    let newer = "record{a:u8,b:list<list<u64,100>,100>}";
    let conversion = conversion("record{a:u8}", newer);
    assert_eq!(conversion.stride(), 80_008);
    let old = Records::of(&[(0u8, vec![(0u8,); 30_000])]);
    let grown = format!("record{{a:u8,b:list<{newer}>}}");
    let lists = Conversion::new(ty("record{a:u8,b:list<record{a:u8}>}"), ty(&grown));
    let lists = lists.unwrap();
    let mut slot = vec![0; lists.stride() as usize];
    let to = Encoder::fixed(&mut slot, 0, &mut [], 16);
    let refused = lists.records(old.bytes(), 0, 1, to).unwrap_err();
    assert_eq!(refused.needed, None);
}

#[test]
fn comparison_lists_streams_with_different_elements() {
    let newer =
        "record{a:stream<record{x:u8,y:u8}>,b:list<future<record{x:u8,y:u8}>>,c:stream<u8>}";
    let older = "record{a:stream<record{x:u8}>,b:list<future<record{x:u8}>>,c:stream<u8>}";
    let value = (Handle(11), vec![Handle(12), Handle(13)], Handle(14));
    let made = converted(newer, older, &value);
    let handles: Vec<_> = made.streams.iter().map(|(handle, _)| *handle).collect();
    assert_eq!(handles, [Handle(11), Handle(12), Handle(13)]);
    assert_eq!(made.streams[0].1.stride(), 1);
    let other = conversion(older, newer);
    assert_eq!(other.of_parameter(0).unwrap().stride(), 2);
    assert!([1, 2, 3].iter().all(|n| other.of_parameter(*n).is_none()));
    let wrong = differs("stream<record{y:u8}>", "stream<record{x:u8}>");
    assert_eq!(wrong, "`x` is `y` on the other side");
    let wrong = differs("stream<u8>", "future<u8>");
    assert_eq!(
        wrong,
        "it is `stream<u8>` on one side, `future<u8>` on the other"
    );
}
