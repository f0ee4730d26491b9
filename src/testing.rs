//! Faults that tests choose by name, to show that they would be found. Never in a build that ships.
//!
//! A test chooses for its own thread, so tests that run side by side don't meet; for a whole process
//! `CLAIM_TEST_MUTANT` does.

use std::cell::Cell;
use std::sync::OnceLock;

use serde_json::Value;

use crate::host::Now;

thread_local! {
    static CHOSEN: Cell<Option<&'static str>> = const { Cell::new(None) };
    static FIRST: Cell<Option<Now>> = const { Cell::new(None) };
}

/// Chooses the fault that this thread's calls have from now on; `None`: none.
pub fn choose(name: Option<&'static str>) {
    CHOSEN.set(name);
}

/// The fault that was chosen.
pub(crate) fn chosen() -> Option<String> {
    static OF_PROCESS: OnceLock<Option<String>> = OnceLock::new();
    let of_process = || std::env::var("CLAIM_TEST_MUTANT").ok();
    CHOSEN.get().map(str::to_owned).or_else(|| OF_PROCESS.get_or_init(of_process).clone())
}

/// Is it this one?
pub(crate) fn fault(name: &str) -> bool {
    chosen().is_some_and(|chosen| chosen == name)
}

/// Do both records say the same version?
pub(crate) fn same_version(one: &[u8], other: &[u8]) -> bool {
    let version = |bytes: &[u8]| match serde_json::from_slice::<Value>(bytes) {
        Ok(record) => record["version"].as_u64(),
        Err(_) => Some(0),
    };
    version(one) == version(other)
}

/// The time that an operation goes by in its round `round`: with the fault, that of its first.
pub(crate) fn time_of_round(round: u32, now: Now) -> Now {
    if round == 0 || !fault("end checked at the start only") {
        FIRST.set(Some(now));
    }
    FIRST.get().unwrap_or(now)
}
