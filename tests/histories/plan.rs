//! How long, how many, and what befalls them.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use super::random::Random;

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) workers: u32,
    pub(crate) length: Duration,
    pub(crate) seed: u64,
    /// A broken protocol in the swap's place, in a build with the feature `testing`.
    pub(crate) mutant: Option<&'static str>,
    /// Where the logs go.
    pub(crate) folder: PathBuf,
}

impl Plan {
    /// `CLAIM_HISTORY_SECONDS`, `CLAIM_HISTORY_WORKERS`, `CLAIM_HISTORY_SEED`, or what suits every build.
    pub(crate) fn from_environment(folder: PathBuf) -> Plan {
        let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
        let seconds = number("CLAIM_HISTORY_SECONDS").unwrap_or(20);
        let workers = number("CLAIM_HISTORY_WORKERS").unwrap_or(20) as u32;
        let seed = number("CLAIM_HISTORY_SEED").unwrap_or_else(seed_of_the_hour);
        Plan { workers, length: Duration::from_secs(seconds), seed, mutant: None, folder }
    }

    /// The numbers of one worker's life.
    pub(crate) fn random(&self, worker: u32, life: u32) -> Random {
        let mut random = Random::seeded(self.seed ^ u64::from(worker) << 40 ^ u64::from(life) << 8);
        Random::seeded(random.next())
    }
}

fn seed_of_the_hour() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |now| now.as_millis() as u64)
}

/// What befalls one of the workers.
pub(crate) enum Fate {
    Kill,
    Freeze(Duration),
}

/// The pause between two fates.
pub(crate) const BEAT: Duration = Duration::from_millis(2);

/// Some 10 kills and 75 freezes a second: most freezes end within a lease, some last beyond all of them.
pub(crate) fn fate(random: &mut Random) -> Option<Fate> {
    match random.within(0..100) {
        0..2 => Some(Fate::Kill),
        2..11 => Some(Fate::Freeze(random.micros(500..60_000))),
        11..15 => Some(Fate::Freeze(random.micros(60_000..400_000))),
        15..17 => Some(Fate::Freeze(random.micros(400_000..1_500_000))),
        _ => None,
    }
}

/// What the crew did to its workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fates {
    /// Worker, life, and when it was known to be over.
    pub(crate) kills: Vec<(u32, u32, u64)>,
    /// Worker, and from when to when it stood still.
    pub(crate) freezes: Vec<(u32, u64, u64)>,
    /// Was the engine away at times? Then calls may fail.
    pub(crate) outages: bool,
    /// Workers that did not come to an end by themselves.
    pub(crate) stuck: Vec<String>,
}

impl Fates {
    pub(crate) fn gone(&self, worker: u32, life: u32) -> Option<u64> {
        self.kills.iter().find(|kill| (kill.0, kill.1) == (worker, life)).map(|kill| kill.2)
    }
}
