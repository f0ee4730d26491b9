//! Faults for tests; never in a build that ships.

use std::time::Duration;

/// Waits for up to 200 µs if `CLAIM_TEST_PAUSES` is set, so that a race that is possible happens.
pub(super) fn step() {
    if std::env::var_os("CLAIM_TEST_PAUSES").is_some() {
        let mut random = [0u8; 2];
        let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        std::thread::sleep(Duration::from_micros(u64::from(u16::from_le_bytes(random)) % 200));
    }
}
