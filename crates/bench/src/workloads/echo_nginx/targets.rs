//! The comparisons between sides inside of nginx, and the targets.

use crate::guests::Guest;
use crate::judgement::Target;
use crate::nginx::{Language, Mode};
use crate::placement::Placement;

use super::sides::Way;

/// A point of the parameters: light threads, and bytes of a message.
pub(super) type Point = (u64, u64);

/// The peers of the other ways inside of nginx.
pub(super) const MODE_B: Way = Way::Service(Mode::B);
pub(super) const MODE_B_AS_PEER: &str = "thalweg@mode_b";
pub(super) const LOAD_FFI_AS_PEER: &str = "thalweg@load_ffi";
pub(super) const LOAD_FFI_GO_AS_PEER: &str = "thalweg@load_ffi_go";

/// The time without 1 us, as a multiple of mode B's.
pub(super) const LESS_1US: &str = "ratio_less_1us";

/// The name of `other` as a peer of `way`, if both are inside of nginx and are compared, and the target.
pub(super) fn inside(
    placement: Placement,
    point: Point,
    way: Way,
    other: Way,
) -> Option<(&'static str, Option<Target>)> {
    let is_held = placement == Placement::OneCpu && point == (1, 512);
    let of_guest = is_held.then_some(Target::Ratio(1.05));
    match (way, other) {
        (MODE_B, _) => None,
        (_, MODE_B) => Some((MODE_B_AS_PEER, bar_of_mode_b(placement, point, way))),
        (Way::Guest(Guest::C), Way::LoadFfi(Language::C)) => Some((LOAD_FFI_AS_PEER, of_guest)),
        (Way::Guest(Guest::Go), Way::LoadFfi(Language::Go)) => {
            Some((LOAD_FFI_GO_AS_PEER, of_guest))
        }
        _ => None,
    }
}

/// The target of a way against mode B.
fn bar_of_mode_b(placement: Placement, point: Point, way: Way) -> Option<Target> {
    let is_single_on_one = placement == Placement::OneCpu && point.0 == 1;
    match way {
        Way::Service(Mode::A) if is_single_on_one => Some(Target::Metric(LESS_1US, 1.3)),
        Way::LoadFfi(Language::C) if is_single_on_one => Some(Target::Ratio(1.15)),
        Way::Spinning if placement == Placement::Split && point == (1, 512) => {
            Some(Target::Ratio(0.1))
        }
        _ => None,
    }
}

/// The largest ratio of a way to the best server.
pub(super) fn bar(placement: Placement, point: Point, way: Way) -> Option<f64> {
    let is_on_one = placement == Placement::OneCpu;
    match (way, point) {
        (MODE_B | Way::Guest(_), (1, 512)) if is_on_one => Some(0.5),
        (MODE_B, (1, 10_240)) if is_on_one => Some(0.5),
        (MODE_B, (1, 102_400)) if is_on_one => Some(0.35),
        (MODE_B, (50, _)) if placement != Placement::Split => Some(0.4),
        _ => None,
    }
}
