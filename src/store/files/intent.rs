//! Names in `intents/`.
//!
//! `tmp.<stamp>` is being written, `<key>.<stamp>` is announced. A stamp is the monotonic clock in nanoseconds
//! and 64 random bits: no name is used twice, and it tells who came first and what is left over. Only courtesy
//! and tidiness read the time in it, so a stamp that lies does no harm: removing an intent is always safe.

use std::time::Duration;

/// What is older belongs to a process that died or has long been frozen; whoever lists removes it.
const LEFTOVER: Duration = Duration::from_secs(60);

/// The folder of intents.
pub(super) const FOLDER: &str = ".store/intents";

/// One replacement's names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    ns: u64,
    text: String,
}

impl Stamp {
    pub(super) fn new(mono_ns: u64, random: u128) -> Stamp {
        Stamp { ns: mono_ns, text: format!("{mono_ns:016x}{:016x}", random as u64) }
    }

    /// The stamp in a listed name.
    pub(super) fn of(name: &str) -> Option<Stamp> {
        let (_, text) = name.rsplit_once('.')?;
        let ns = u64::from_str_radix(text.get(..16)?, 16).ok()?;
        (text.len() == 32).then(|| Stamp { ns, text: text.to_owned() })
    }

    /// Its age; `None` if it lies in the future, as after a reboot.
    pub(super) fn age(&self, mono_ns: u64) -> Option<Duration> {
        mono_ns.checked_sub(self.ns).map(Duration::from_nanos)
    }

    pub(super) fn is_leftover(&self, mono_ns: u64) -> bool {
        self.age(mono_ns).is_none_or(|age| age > LEFTOVER)
    }

    pub(super) fn staged(&self) -> String {
        format!("{FOLDER}/tmp.{}", self.text)
    }

    pub(super) fn announced(&self, key: &str) -> String {
        format!("{FOLDER}/{key}.{}", self.text)
    }
}

/// A key's part of its intents' names: a hash of its file's path with ASCII letters lowered, so that a file
/// system that folds case has one hash a file.
pub(super) fn key_hash(path: &str) -> String {
    let hash = blake3::hash(path.to_ascii_lowercase().as_bytes());
    let mut text = hash.to_hex().to_string();
    text.truncate(32);
    text
}
