//! Codecs, each behind the same few functions: the subjects of the lab's workload `codec`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`values`] | the four types, their values, and a sum over all of their fields |
//! | [`serde_peers`] | `ciborium`, `postcard` |
//! | [`bincode_peer`], [`rkyv_peer`], [`minicbor_peer`], [`flatbuffers_peer`] | one each |
//! | [`c_struct`] | structs in C, copied with their tails |

pub mod bincode_peer;
pub mod c_struct;
pub mod flatbuffers_peer;
pub mod minicbor_peer;
pub mod rkyv_peer;
pub mod serde_peers;
pub mod values;

pub use values::Value;

/// A codec of values of type `V`. Each function is one operation of the codec itself. A failure is
/// a defect of the lab, and panics.
pub trait Codec<V: Value>: 'static {
    /// Its public name.
    const NAME: &'static str;
    /// The codec's own representation of the value.
    type Own;
    /// The memory of an encoded value; the next encoding reuses it.
    type Buffer: Default;

    /// Converts `value` to the codec's representation.
    fn own(value: &V) -> Self::Own;

    /// Converts `own` back.
    fn value(own: &Self::Own) -> V;

    /// Writes `own` into `buffer`, replacing its contents. Returns the number of bytes written.
    fn encode(own: &Self::Own, buffer: &mut Self::Buffer) -> usize;

    /// Checks the contents of `buffer`, and copies them out.
    fn decode(buffer: &Self::Buffer) -> Self::Own;
}

/// A codec that can read in place.
pub trait InPlace<V: Value>: Codec<V> {
    /// Checks the contents of `buffer` and reads every field: [`Value::sum`], without a copy.
    fn view(buffer: &Self::Buffer) -> u64;
}
