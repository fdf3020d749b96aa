//! A message for each rule that breaks it.

mod sample;

use sample::{Rights, Step};
use thalweg_wire::{Decode, Handle, Malformed, Rule, message};

/// A message of `words` after the header, with no handles.
fn message_of(root_and_tails: &[u32]) -> Vec<u8> {
    let size = 16 + 4 * root_and_tails.len() as u32;
    [&[size, 9, 0, 16], root_and_tails]
        .concat()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

fn refusal<T: Decode>(bytes: &[u8]) -> (Rule, u32) {
    let Malformed { rule, at } =
        match message::open(bytes, 9).and_then(|message| message.view::<T>()) {
            Ok(view) => panic!("not refused: {view:?}"),
            Err(malformed) => malformed,
        };
    (rule, at)
}

#[test]
fn shorter_than_a_header() {
    for length in 0..16 {
        assert_eq!(refusal::<u32>(&message_of(&[])[..length]), (Rule::Size, 0));
    }
}

#[test]
fn size_in_the_header_is_not_the_message_s() {
    let mut bytes = message_of(&[1]);
    bytes.push(0);
    assert_eq!(refusal::<u32>(&bytes), (Rule::Size, 0));
}

#[test]
fn of_another_type() {
    let mut bytes = message_of(&[1]);
    bytes[4] = 8;
    assert_eq!(refusal::<u32>(&bytes), (Rule::Layout, 4));
}

#[test]
fn more_handles_than_there_is_room_for() {
    let mut bytes = message_of(&[1]);
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(refusal::<u32>(&bytes), (Rule::Handles, 8));
}

#[test]
fn root_that_is_not_behind_the_handles() {
    let mut bytes = message_of(&[1]);
    bytes[12] = 12;
    assert_eq!(refusal::<u32>(&bytes), (Rule::Root, 12));
}

#[test]
fn root_that_is_cut_short() {
    assert_eq!(refusal::<u64>(&message_of(&[1])), (Rule::Root, 16));
}

#[test]
fn handle_that_is_not_in_the_table() {
    assert_eq!(refusal::<Handle>(&message_of(&[0])), (Rule::Handles, 16));
}

/// Two handles, and a root that names these two.
fn two_handles(first: u32, second: u32) -> Vec<u8> {
    let words = [40, 9, 2, 32, 7, 0, 8, 0, first, second];
    words
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect()
}

#[test]
fn handles_in_turn_pass() {
    let bytes = two_handles(0, 1);
    let view = message::open(&bytes, 9).unwrap().view::<(Handle, Handle)>();
    assert_eq!(view, Ok((Handle(7), Handle(8))));
}

#[test]
fn handle_that_is_used_twice() {
    assert_eq!(
        refusal::<(Handle, Handle)>(&two_handles(0, 0)),
        (Rule::Handles, 36)
    );
}

#[test]
fn handle_out_of_turn() {
    assert_eq!(
        refusal::<(Handle, Handle)>(&two_handles(1, 0)),
        (Rule::Handles, 32)
    );
}

#[test]
fn handle_that_no_field_names() {
    assert_eq!(
        refusal::<(Handle, u32)>(&two_handles(0, 0)),
        (Rule::Handles, 32)
    );
}

#[test]
fn string_beyond_the_end() {
    assert_eq!(
        refusal::<String>(&message_of(&[24, 5, 0])),
        (Rule::Bounds, 16)
    );
    assert_eq!(
        refusal::<String>(&message_of(&[24, u32::MAX, 0])),
        (Rule::Bounds, 16)
    );
    assert_eq!(
        refusal::<String>(&message_of(&[u32::MAX, 1, 0])),
        (Rule::Bounds, 16)
    );
}

#[test]
fn list_whose_bytes_are_more_than_a_u32_counts() {
    assert_eq!(
        refusal::<Vec<u64>>(&message_of(&[24, 0x2000_0000, 0, 0])),
        (Rule::Bounds, 16)
    );
}

#[test]
fn string_inside_the_header_or_the_root() {
    assert_eq!(
        refusal::<String>(&message_of(&[8, 4, 0])),
        (Rule::Order, 16)
    );
    assert_eq!(
        refusal::<String>(&message_of(&[20, 4, 0])),
        (Rule::Order, 16)
    );
}

#[test]
fn list_that_is_not_aligned() {
    assert_eq!(
        refusal::<Vec<u32>>(&message_of(&[26, 1, 0, 0])),
        (Rule::Alignment, 16)
    );
}

#[test]
fn strings_that_overlap() {
    assert_eq!(
        refusal::<(String, String)>(&message_of(&[32, 4, 35, 1, 0])),
        (Rule::Order, 24)
    );
}

#[test]
fn strings_out_of_order() {
    assert_eq!(
        refusal::<(String, String)>(&message_of(&[36, 4, 32, 4, 0, 0])),
        (Rule::Order, 24)
    );
}

#[test]
fn element_s_string_that_stands_before_its_list() {
    assert_eq!(
        refusal::<Vec<String>>(&message_of(&[28, 1, 0, 24, 1])),
        (Rule::Order, 28)
    );
}

#[test]
fn tails_with_a_gap_between_them_pass() {
    let bytes = message_of(&[32, 4, 40, 4, 0x6161_6161, 0, 0x6262_6262]);
    assert_eq!(
        message::open(&bytes, 9).unwrap().view::<(String, String)>(),
        Ok(("aaaa", "bbbb"))
    );
}

#[test]
fn empty_string_with_an_offset() {
    assert_eq!(
        refusal::<String>(&message_of(&[24, 0, 0])),
        (Rule::EmptyOffset, 16)
    );
}

#[test]
fn list_without_size_with_an_offset() {
    assert_eq!(
        refusal::<Vec<()>>(&message_of(&[24, 3])),
        (Rule::EmptyOffset, 16)
    );
}

#[test]
fn list_without_size_that_is_too_long() {
    assert_eq!(
        refusal::<Vec<()>>(&message_of(&[0, 65_537])),
        (Rule::Unsized, 16)
    );
    let most = message_of(&[0, 65_536]);
    assert_eq!(
        message::open(&most, 9)
            .unwrap()
            .view::<Vec<()>>()
            .unwrap()
            .len(),
        65_536
    );
}

#[test]
fn string_that_is_not_utf_8() {
    assert_eq!(
        refusal::<String>(&message_of(&[24, 4, 0xff61_6161])),
        (Rule::Utf8, 16)
    );
    // Half of a character, cut by the length.
    assert_eq!(
        refusal::<String>(&message_of(&[24, 1, 0xa9c3])),
        (Rule::Utf8, 16)
    );
}

#[test]
fn bool_that_is_two() {
    assert_eq!(refusal::<bool>(&message_of(&[2])), (Rule::Bool, 16));
    assert_eq!(
        refusal::<Vec<bool>>(&message_of(&[24, 3, 0x0002_0100])),
        (Rule::Bool, 26)
    );
}

#[test]
fn element_of_a_list_of_a_fixed_length() {
    assert_eq!(
        refusal::<[bool; 3]>(&message_of(&[0x0002_0100])),
        (Rule::Bool, 18)
    );
    assert_eq!(refusal::<[u32; 3]>(&message_of(&[1, 2])), (Rule::Root, 16));
    assert_eq!(
        refusal::<[String; 2]>(&message_of(&[32, 1, 32, 1, 0x61])),
        (Rule::Order, 24)
    );
}

#[test]
fn char_that_is_a_surrogate_or_too_large() {
    assert_eq!(refusal::<char>(&message_of(&[0xd800])), (Rule::Char, 16));
    assert_eq!(refusal::<char>(&message_of(&[0x11_0000])), (Rule::Char, 16));
}

#[test]
fn option_result_and_variant_without_such_a_case() {
    assert_eq!(
        refusal::<Option<u8>>(&message_of(&[2])),
        (Rule::Discriminant, 16)
    );
    assert_eq!(
        refusal::<Result<u8, ()>>(&message_of(&[2])),
        (Rule::Discriminant, 16)
    );
    assert_eq!(
        refusal::<Step>(&message_of(&[3, 0, 0, 0])),
        (Rule::Discriminant, 16)
    );
}

#[test]
fn flag_that_does_not_exist() {
    assert_eq!(refusal::<Rights>(&message_of(&[0b1000])), (Rule::Flags, 16));
    let all = message_of(&[0b0111]);
    assert_eq!(
        message::open(&all, 9).unwrap().view::<Rights>(),
        Ok(Rights(7))
    );
}

#[test]
fn error_deep_inside_names_its_place() {
    // tuple<u32, list<option<string>>>: the second element's string is not UTF-8.
    let bytes = message_of(&[7, 28, 2, 0, 0, 0, 1, 52, 1, 0xff]);
    assert_eq!(
        refusal::<(u32, Vec<Option<String>>)>(&bytes),
        (Rule::Utf8, 44)
    );
}

#[test]
fn a_refusal_says_what_and_where() {
    let text = Malformed {
        rule: Rule::Utf8,
        at: 44,
    }
    .to_string();
    assert_eq!(text, "malformed message: a string is not UTF-8 (byte 44)");
}
