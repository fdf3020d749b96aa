//! Configures linking as a Node addon.

fn main() {
    napi_build::setup();
}
