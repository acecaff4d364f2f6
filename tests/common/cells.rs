//! Single cells on the kernel that the tests run on.

use std::sync::atomic::AtomicBool;

use sweep::backend::Job;
use sweep::backend::native::Native;
use sweep::measurement::Measurement;
use sweep::settings::{Settings, Value, find};
use sweep::units::Span;

/// Settings from paths and values.
pub fn settings(values: &[(&str, Value)]) -> Settings {
    let mut settings = Settings::default();
    for (path, value) in values {
        let key = find(path).expect("a key");
        key.put(&mut settings, &key.kind.check(value).expect("a fitting value"));
    }
    settings
}

pub fn word(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// One repeat, on this kernel.
pub fn measure(values: &[(&str, Value)], timeout_ms: u64) -> Measurement {
    let native = Native::new("for a test").expect("tests run as root, or where user namespaces are allowed");
    let job = Job {
        settings: settings(values),
        timeout: Span(timeout_ms * 1_000_000),
        phase: Span(0),
        evidence: true,
        capture: None,
    };
    native.measure(&job, &AtomicBool::new(false))
}
