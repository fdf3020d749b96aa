//! What other languages open.

use crate::lab::LabServer;
use crate::service::LabService;

thalweg_capi::export!(LabServer<LabService>, LabServer::new(LabService));
