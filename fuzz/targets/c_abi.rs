#![no_main]

#[path = "../src/c_abi.rs"]
mod host;

libfuzzer_sys::fuzz_target!(|data: &[u8]| host::c_abi(data));
