#![no_main]

#[path = "../src/bindgen.rs"]
#[expect(dead_code, reason = "another target is in it")]
mod bindgen;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bindgen::wit(data));
