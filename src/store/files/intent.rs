//! Names in `intents/`.
//!
//! `tmp.<key>.<stamp>` is being written, `<key>.<stamp>` is announced. A stamp is a mark of the clock that counted it,
//! the monotonic time in nanoseconds, and 63 random bits and one that says whether a task is being taken: no name is
//! used twice, and it tells who came first and what is left over. Only courtesy and tidiness read it, so a stamp that lies does no harm: removing an intent
//! is always safe.

use std::time::Duration;

use crate::error::Result;
use crate::host::Host;

/// What is older belongs to a process that died or has long been frozen; whoever lists removes it.
const LEFTOVER: Duration = Duration::from_secs(60);

/// The folder of intents.
pub(super) const FOLDER: &str = ".store/intents";

/// Leftovers counted by another clock (an earlier boot's, another time namespace's) have no age that could be
/// told; one in so many writers removes them.
const SWEEPERS: u64 = 64;

/// The lengths of a stamp's parts, in hexadecimal digits.
const CLOCK: usize = 8;
const TIME: usize = 16;
const RANDOM: usize = 16;

/// What is before the key in the names of those that are being written.
const STAGED: &str = "tmp.";

/// Does `name` announce a change of this key?
pub(super) fn announces(name: &str, key: &str) -> bool {
    name.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
}

/// Does it stand for one, be it announced or still being written?
pub(super) fn is_of(name: &str, key: &str) -> bool {
    announces(name.strip_prefix(STAGED).unwrap_or(name), key)
}

/// One replacement's names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp(String);

impl Stamp {
    pub(super) fn new(host: &dyn Host) -> Result<Stamp> {
        Stamp::of_change(host, false)
    }

    /// The last of the random bits says whether it `is_taking` what is changed.
    pub(super) fn of_change(host: &dyn Host, is_taking: bool) -> Result<Stamp> {
        let place = host.place();
        let clock = blake3::hash(format!("{} {}", place.boot, place.time_namespace).as_bytes()).to_hex();
        let (clock, random) =
            (clock.get(..CLOCK).unwrap_or_default(), host.random()? as u64 & !1 | u64::from(is_taking));
        Ok(Stamp(format!("{clock}{:016x}{random:016x}", host.mono_ns())))
    }

    /// The stamp in a listed name.
    pub(super) fn of(name: &str) -> Option<Stamp> {
        let (_, text) = name.rsplit_once('.')?;
        let is_stamp = text.len() == CLOCK + TIME + RANDOM && text.bytes().all(|b| b.is_ascii_hexdigit());
        is_stamp.then(|| Stamp(text.to_owned()))
    }

    fn part(&self, from: usize, length: usize) -> &str {
        self.0.get(from..from + length).unwrap_or_default()
    }

    fn number(&self, from: usize) -> u64 {
        u64::from_str_radix(self.part(from, 16), 16).unwrap_or_default()
    }

    fn same_clock(&self, other: &Stamp) -> bool {
        self.part(0, CLOCK) == other.part(0, CLOCK)
    }

    /// Its age, where that is known by the clock of `mine`.
    fn age(&self, mine: &Stamp, mono_ns: u64) -> Option<Duration> {
        let age = mono_ns.checked_sub(self.number(CLOCK)).map(Duration::from_nanos);
        age.filter(|_| self.same_clock(mine))
    }

    /// Was it made before `mine`, and less than `moment` ago?
    pub(super) fn goes_before(&self, mine: &Stamp, mono_ns: u64, moment: Duration) -> bool {
        self < mine && self.is_fresh(mine, mono_ns, moment)
    }

    pub(super) fn is_taking(&self) -> bool {
        self.number(CLOCK + TIME) & 1 == 1
    }

    /// Was it made less than `moment` ago?
    pub(super) fn is_fresh(&self, clock_of: &Stamp, mono_ns: u64, moment: Duration) -> bool {
        self.age(clock_of, mono_ns).is_some_and(|age| age < moment)
    }

    /// Is it for the author of `mine` to remove as left over?
    pub(super) fn is_leftover(&self, mine: &Stamp, mono_ns: u64) -> bool {
        match self.age(mine, mono_ns) {
            Some(age) => age > LEFTOVER,
            None => (mine.number(CLOCK + TIME) >> 1).is_multiple_of(SWEEPERS),
        }
    }

    /// Has its author died, or long been frozen, as seen by the author of `mine`? `None`: its age can't be told.
    pub(super) fn is_old(&self, mine: &Stamp, mono_ns: u64) -> Option<bool> {
        self.age(mine, mono_ns).map(|age| age > LEFTOVER)
    }

    pub(super) fn staged(&self, key: &str) -> String {
        format!("{FOLDER}/{STAGED}{key}.{}", self.0)
    }

    pub(super) fn announced(&self, key: &str) -> String {
        format!("{FOLDER}/{key}.{}", self.0)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(clock: &str, ns: u64, random: u64) -> Stamp {
        Stamp::of(&format!("key.{clock}{ns:016x}{random:016x}")).unwrap()
    }

    #[test]
    fn who_came_first_goes_first_for_a_moment() {
        let moment = Duration::from_nanos(50);
        let (first, second) = (stamp("aaaaaaaa", 100, 9), stamp("aaaaaaaa", 120, 1));
        assert!(first.goes_before(&second, 149, moment));
        assert!(!first.goes_before(&second, 150, moment));
        assert!(!second.goes_before(&first, 149, moment));
        assert!(!stamp("bbbbbbbb", 100, 9).goes_before(&second, 149, moment));
    }

    #[test]
    fn what_is_old_is_left_over() {
        let minute = 60_000_000_000;
        let mine = stamp("aaaaaaaa", minute, 2);
        assert!(stamp("aaaaaaaa", 0, 5).is_leftover(&mine, minute + 1));
        assert!(!stamp("aaaaaaaa", 0, 5).is_leftover(&mine, minute));
        assert!(!stamp("bbbbbbbb", 0, 5).is_leftover(&mine, minute + 1), "another clock's age is unknown");
        assert!(stamp("bbbbbbbb", 0, 5).is_leftover(&stamp("aaaaaaaa", minute, 128), minute + 1));
        assert_eq!(Stamp::of("tmp.zz"), None);
    }
}
