//! Settings that many clients watch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg::port::{Call, StreamReader, StreamWriter};

use crate::recipes::Setting;

/// The settings of all clients. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    values: BTreeMap<String, String>,
    watchers: Vec<StreamWriter<Setting>>,
}

impl Settings {
    pub fn set(&self, setting: Setting) {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared
            .watchers
            .retain(|writer| writer.send_until(&setting, 0).is_ok());
        shared.values.insert(setting.name, setting.value);
    }

    pub fn watch(&self, call: &Call) -> StreamReader<Setting> {
        let (writer, reader) = call.stream();
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = shared.values.iter().all(|(name, value)| {
            let setting = Setting {
                name: name.clone(),
                value: value.clone(),
            };
            writer.send_until(&setting, 0).is_ok()
        });
        if is_open {
            shared.watchers.push(writer);
        }
        reader
    }
}
