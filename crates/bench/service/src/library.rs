//! What other languages open.

use thalweg::port::{Incoming, Package, QueueLimits, Service};
use thalweg_capi::abi::TwTable;
use thalweg_capi::{Export, Library};

use crate::lab::LabServer;
use crate::service::LabService;

thalweg_capi::export!(LabServer<LabService>, LabServer::new(LabService::default()));

/// Calls that may wait for one client of `lab_deep_library`.
pub const DEEP_CALLS: u32 = 1 << 18;

/// The service with `max_queued_calls` set to [`DEEP_CALLS`], so that a burst of submissions is not
/// refused.
struct Deep(LabServer<LabService>);

impl Service for Deep {
    const PACKAGE: &'static Package = &Package {
        limits: QueueLimits {
            max_queued_calls: DEEP_CALLS,
            ..QueueLimits::DEFAULT
        },
        ..*<LabServer<LabService> as Service>::PACKAGE
    };

    fn dispatch(&mut self, incoming: Incoming) {
        self.0.dispatch(incoming);
    }
}

impl Export for Deep {
    type Service = Self;

    fn make() -> Self {
        Self(LabServer::new(LabService::default()))
    }
}

/// As `tw_library`, for the service with a large mailbox.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub extern "C" fn lab_deep_library(_abi: u32) -> *const TwTable {
    static LIBRARY: Library = Library::new::<Deep>();
    LIBRARY.table()
}
