//! A type may be nested as deep as the limit says.

use thalweg_wire::{Decode, MAX_DEPTH, message};

type Four<T> = Option<Option<Option<Option<T>>>>;
type Sixteen<T> = Four<Four<Four<Four<T>>>>;
type Deepest = Sixteen<Sixteen<Sixteen<Sixteen<u8>>>>;

#[test]
fn type_of_maximum_depth_can_be_read() {
    assert_eq!(Deepest::DEPTH, MAX_DEPTH);
    let bytes = message::encode(&Deepest::None, 1, Vec::new()).unwrap();
    assert_eq!(
        message::open(&bytes, 1).unwrap().view::<Deepest>(),
        Ok(None)
    );
}
