//! For each rule, a message that breaks it.

use crate::sample::{Rights, Step};
use thalweg_wire::{Decode, Handle, Malformed, Rule, message};

/// A message of these words after the header, without handles.
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
fn message_shorter_than_a_header_is_an_error() {
    for length in 0..16 {
        assert_eq!(refusal::<u32>(&message_of(&[])[..length]), (Rule::Size, 0));
    }
}

#[test]
fn wrong_size_in_the_header_is_an_error() {
    let mut bytes = message_of(&[1]);
    bytes.push(0);
    assert_eq!(refusal::<u32>(&bytes), (Rule::Size, 0));
}

#[test]
fn message_of_another_type_is_an_error() {
    let mut bytes = message_of(&[1]);
    bytes[4] = 8;
    assert_eq!(refusal::<u32>(&bytes), (Rule::Layout, 4));
}

#[test]
fn too_many_handles_are_an_error() {
    let mut bytes = message_of(&[1]);
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(refusal::<u32>(&bytes), (Rule::Handles, 8));
}

#[test]
fn root_not_behind_the_handles_is_an_error() {
    let mut bytes = message_of(&[1]);
    bytes[12] = 12;
    assert_eq!(refusal::<u32>(&bytes), (Rule::Root, 12));
}

#[test]
fn truncated_root_is_an_error() {
    assert_eq!(refusal::<u64>(&message_of(&[1])), (Rule::Root, 16));
}

#[test]
fn handle_outside_the_table_is_an_error() {
    assert_eq!(refusal::<Handle>(&message_of(&[0])), (Rule::Handles, 16));
}

/// A message with two handles, and a root that refers to these two indices.
fn two_handles(first: u32, second: u32) -> Vec<u8> {
    let words = [40, 9, 2, 32, 7, 0, 8, 0, first, second];
    words
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect()
}

#[test]
fn handles_in_order_are_accepted() {
    let bytes = two_handles(0, 1);
    let view = message::open(&bytes, 9).unwrap().view::<(Handle, Handle)>();
    assert_eq!(view, Ok((Handle(7), Handle(8))));
}

#[test]
fn handle_used_twice_is_an_error() {
    assert_eq!(
        refusal::<(Handle, Handle)>(&two_handles(0, 0)),
        (Rule::Handles, 36)
    );
}

#[test]
fn handle_out_of_order_is_an_error() {
    assert_eq!(
        refusal::<(Handle, Handle)>(&two_handles(1, 0)),
        (Rule::Handles, 32)
    );
}

#[test]
fn handle_without_a_field_is_an_error() {
    assert_eq!(
        refusal::<(Handle, u32)>(&two_handles(0, 0)),
        (Rule::Handles, 32)
    );
}

#[test]
fn string_beyond_the_end_is_an_error() {
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
fn list_longer_than_a_u32_is_an_error() {
    assert_eq!(
        refusal::<Vec<u64>>(&message_of(&[24, 0x2000_0000, 0, 0])),
        (Rule::Bounds, 16)
    );
}

#[test]
fn string_inside_the_header_or_the_root_is_an_error() {
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
fn unaligned_list_is_an_error() {
    assert_eq!(
        refusal::<Vec<u32>>(&message_of(&[26, 1, 0, 0])),
        (Rule::Alignment, 16)
    );
}

#[test]
fn overlapping_strings_are_an_error() {
    assert_eq!(
        refusal::<(String, String)>(&message_of(&[32, 4, 35, 1, 0])),
        (Rule::Order, 24)
    );
}

#[test]
fn strings_out_of_order_are_an_error() {
    assert_eq!(
        refusal::<(String, String)>(&message_of(&[36, 4, 32, 4, 0, 0])),
        (Rule::Order, 24)
    );
}

#[test]
fn string_of_an_element_before_its_list_is_an_error() {
    assert_eq!(
        refusal::<Vec<String>>(&message_of(&[28, 1, 0, 24, 1])),
        (Rule::Order, 28)
    );
}

#[test]
fn tails_with_a_gap_are_accepted() {
    let bytes = message_of(&[32, 4, 40, 4, 0x6161_6161, 0, 0x6262_6262]);
    assert_eq!(
        message::open(&bytes, 9).unwrap().view::<(String, String)>(),
        Ok(("aaaa", "bbbb"))
    );
}

#[test]
fn empty_string_with_an_offset_is_an_error() {
    assert_eq!(
        refusal::<String>(&message_of(&[24, 0, 0])),
        (Rule::EmptyOffset, 16)
    );
}

#[test]
fn list_of_size_zero_elements_with_an_offset_is_an_error() {
    assert_eq!(
        refusal::<Vec<()>>(&message_of(&[24, 3])),
        (Rule::EmptyOffset, 16)
    );
}

#[test]
fn list_of_size_zero_elements_that_is_too_long_is_an_error() {
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
fn string_that_is_not_utf_8_is_an_error() {
    assert_eq!(
        refusal::<String>(&message_of(&[24, 4, 0xff61_6161])),
        (Rule::Utf8, 16)
    );
    // The length cuts a character in half.
    assert_eq!(
        refusal::<String>(&message_of(&[24, 1, 0xa9c3])),
        (Rule::Utf8, 16)
    );
}

#[test]
fn bool_of_value_two_is_an_error() {
    assert_eq!(refusal::<bool>(&message_of(&[2])), (Rule::Bool, 16));
    assert_eq!(
        refusal::<Vec<bool>>(&message_of(&[24, 3, 0x0002_0100])),
        (Rule::Bool, 26)
    );
}

#[test]
fn bad_element_of_a_fixed_length_list_is_an_error() {
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
fn surrogate_or_too_large_char_is_an_error() {
    assert_eq!(refusal::<char>(&message_of(&[0xd800])), (Rule::Char, 16));
    assert_eq!(refusal::<char>(&message_of(&[0x11_0000])), (Rule::Char, 16));
}

#[test]
fn undefined_discriminant_is_an_error() {
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
fn undefined_flag_is_an_error() {
    assert_eq!(refusal::<Rights>(&message_of(&[0b1000])), (Rule::Flags, 16));
    let all = message_of(&[0b0111]);
    assert_eq!(
        message::open(&all, 9).unwrap().view::<Rights>(),
        Ok(Rights::all())
    );
}

#[test]
fn error_of_a_nested_field_names_its_path() {
    // tuple<u32, list<option<string>>>: the string of the second element is not UTF-8.
    let bytes = message_of(&[7, 28, 2, 0, 0, 0, 1, 52, 1, 0xff]);
    assert_eq!(
        refusal::<(u32, Vec<Option<String>>)>(&bytes),
        (Rule::Utf8, 44)
    );
}

#[test]
fn error_text_names_the_rule_and_the_place() {
    let text = Malformed {
        rule: Rule::Utf8,
        at: 44,
    }
    .to_string();
    assert_eq!(text, "malformed message: a string is not UTF-8 (byte 44)");
}
