//! Writes UniFFI's Python file: `peer-uniffi-bindgen generate --library FILE --language python --out-dir DIR`.

fn main() {
    uniffi::uniffi_bindgen_main();
}
