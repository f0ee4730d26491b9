//! True time, and what the clocks of one machine make of it.

/// True time, and the clocks that it drives.
#[derive(Default)]
pub struct Time {
    pub ns: u64,
    pub boot: u32,
    booted_ns: u64,
    pub wall_off_ms: i64,
}

impl Time {
    pub fn mono_ns(&self) -> u64 {
        self.ns - self.booted_ns + 1_000_000_000
    }

    pub fn reading(&self) -> Reading {
        let mono_ms = (self.mono_ns() / 1_000_000) as i64;
        let wall_ms = 1_700_000_000_000 + (self.ns / 1_000_000) as i64 + self.wall_off_ms;
        Reading { mono_ms, wall_ms, boot: self.boot }
    }

    /// The machine starts anew.
    pub fn reboot(&mut self) {
        self.boot += 1;
        self.booted_ns = self.ns;
    }

    pub fn pass_ms(&mut self, ms: u64) {
        self.ns += ms * 1_000_000;
    }
}

/// Both clocks at one moment of true time, and the boot that the one counts from.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub mono_ms: i64,
    pub wall_ms: i64,
    pub boot: u32,
}

pub fn boot_name(boot: u32) -> String {
    format!("boot-{boot}")
}
