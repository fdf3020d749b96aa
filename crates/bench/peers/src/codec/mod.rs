//! Codecs, each behind the same few functions: what the lab's workload `codec` compares.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`values`] | the four types, what stands in them, and a sum over all of their fields |
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

/// A codec of values of type `V`. Each function is one operation of the codec's own; a failure is a defect of the lab, and a panic.
pub trait Codec<V: Value>: 'static {
    /// Its public name.
    const NAME: &'static str;
    /// The value as this codec's users have it.
    type Own;
    /// Where an encoded value stands. Its memory is used again by the next.
    type Buffer: Default;

    /// `value` as this codec has it.
    fn own(value: &V) -> Self::Own;

    /// What `own` was made of.
    fn value(own: &Self::Own) -> V;

    /// Writes `own` into `buffer`, of which nothing before stays. Returns how many bytes were written.
    fn encode(own: &Self::Own, buffer: &mut Self::Buffer) -> usize;

    /// Checks what stands in `buffer`, and copies all of it out.
    fn decode(buffer: &Self::Buffer) -> Self::Own;
}

/// One that can be read where it stands.
pub trait InPlace<V: Value>: Codec<V> {
    /// Checks what stands in `buffer` and reads every field of it: [`Value::sum`], without a copy.
    fn view(buffer: &Self::Buffer) -> u64;
}
