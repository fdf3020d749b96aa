//! The record, variant, enum and flags that the tests use, written like generated code.
#![allow(dead_code, reason = "each test uses a part")]

pub mod nested;

use thalweg_wire as wire;

wire::record! {
    #[derive(Clone, Debug, PartialEq)]
    pub struct Match / MatchView<'a> {
        pub path: String as &'a str => "path" @ 0;
        pub line: u64 => "line" @ 8,
        pub column: u64 => "column" @ 16;
        pub text: String as &'a str => "text" @ 24;
        pub path_bytes: Option<Vec<u8>> as Option<wire::ListView<'a, u8>> => "path-bytes" @ 32;
        pub text_bytes: Option<Vec<u8>> as Option<wire::ListView<'a, u8>> => "text-bytes" @ 44;
        pub cut: bool => "cut" @ 56;
    }
    size 64, align 8, hash 0xc2bc_2926_3591_6f6c, impl Cbor
}

wire::variant! {
    #[derive(Clone, Debug, PartialEq)]
    pub enum Step / StepView<'a> {
        Jump(Vec<String> as wire::ListView<'a, String>) = 0 => "jump",
        Wait(f64) = 1 => "wait",
        Stop = 2 => "stop",
    }
    tag u8, payload 8, size 16, align 8, hash 0x64ba_88af_5075_3870, impl Cbor
}

wire::flags! {
    pub struct Rights: u8 {
        READ = 0 => "read",
        WRITE = 1 => "write",
        RUN = 2 => "run",
    }
    hash 0xc898_15cb_8c38_3c66, impl Cbor
}
