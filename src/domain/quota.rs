//! Quotas: so much per so long, one record each.
//!
//! What a claim takes of a quota counts from the moment it is taken to the end of its window, whatever becomes of
//! the claim. So an entry here follows no node: the clock alone ends it. Only who put it there may take it out, when
//! the claim did not come of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::record::{Moment, Name};
use super::standing::{Facts, by_clock_ms, furthest_ms, remaining_ms};
use crate::error::{Error, Result};
use crate::time::{human, parse_duration};

/// How many entries a record may have before old ones become one.
const MANY: usize = 256;

/// The newest entries, which stay as they are: whoever put them there may still take them out.
const NEWEST: usize = 64;

/// Old entries that end within this part of a window become one that ends with the last of them.
const GRAIN: i64 = 128;

/// So much per so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    limit: u64,
    period_ms: i64,
}

impl Rate {
    /// The highest limit.
    pub const MAX_LIMIT: u64 = 1_000_000;
    /// The shortest period.
    pub const MIN_PERIOD: Duration = Duration::from_secs(1);
    /// The longest period.
    pub const MAX_PERIOD: Duration = Duration::from_secs(30 * 24 * 3600);

    /// `limit`, 1 to 1,000,000, per `period`, 1 second to 30 days; others are refused
    /// ([`Code::Usage`](crate::Code::Usage)).
    pub fn new(limit: u64, period: Duration) -> Result<Rate> {
        if !(1..=Rate::MAX_LIMIT).contains(&limit) {
            return Err(Error::usage(format!("a quota's limit is 1 to 1000000, not {limit}")));
        }
        if !(Rate::MIN_PERIOD..=Rate::MAX_PERIOD).contains(&period) {
            return Err(Error::usage("a quota's period lasts from 1s to 30d"));
        }
        Ok(Rate { limit, period_ms: i64::try_from(period.as_millis()).unwrap_or(i64::MAX) })
    }

    /// Reads a rate such as `100/1h`.
    pub fn parse(text: &str) -> Result<Rate> {
        let refuse = || Error::usage(format!("not a rate: {text:?}; write it like 100/1h"));
        let (limit, period) = text.split_once('/').ok_or_else(refuse)?;
        Rate::new(limit.parse().map_err(|_| refuse())?, parse_duration(period)?)
    }

    /// The most that may be taken within a period.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The period, in milliseconds.
    pub fn period_ms(&self) -> i64 {
        self.period_ms
    }
}

impl std::fmt::Display for Rate {
    /// As people read it: `100 per 1h`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} per {}", self.limit, human(self.period_ms))
    }
}

/// A quota's record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quota {
    /// How often it was written.
    pub(crate) version: u64,
    pub(crate) name: Name,
    pub(crate) rate: Rate,
    pub(crate) entries: Vec<Spent>,
    /// Fields that this program doesn't know.
    pub(crate) extra: Map<String, Value>,
}

/// What was taken of a quota at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spent {
    /// Random, for whoever put it there; several that became one have that of one of them.
    pub(crate) attempt: u128,
    pub(crate) amount: u64,
    /// Until when it counts.
    pub(crate) ends: Moment,
    /// How long that was when it was written, in milliseconds.
    pub(crate) length_ms: i64,
    /// Fields that this program doesn't know.
    pub(crate) extra: Map<String, Value>,
}

impl Quota {
    pub(crate) fn new(name: Name, rate: Rate) -> Quota {
        Quota { version: 0, name, rate, entries: Vec::new(), extra: Map::new() }
    }

    /// Leaves only what counts now. An end further away than its window is long can't be believed, as after a reboot
    /// with the clock set back: it becomes one by this machine's clock. `true`: one did, and that must be written.
    pub(crate) fn settle(&mut self, facts: &Facts<'_>) -> bool {
        let mut mended = false;
        self.entries.retain_mut(|spent| {
            let left = remaining_ms(&spent.ends, facts);
            if left > furthest_ms(&spent.ends, spent.length_ms, facts) {
                spent.ends = Moment::after(spent.length_ms, facts);
                mended = true;
            }
            left > 0
        });
        mended
    }

    /// How much counts.
    pub(crate) fn used(&self) -> u64 {
        self.entries.iter().fold(0, |sum, spent| sum.saturating_add(spent.amount))
    }

    /// In how many milliseconds `amount`, no more than the limit, can be had, as far as the entries say; 0: now.
    pub(crate) fn free_in_ms(&self, amount: u64, facts: &Facts<'_>) -> i64 {
        let mut ends: Vec<(i64, u64)> =
            self.entries.iter().map(|spent| (remaining_ms(&spent.ends, facts), spent.amount)).collect();
        ends.sort_unstable();
        let mut used = self.used();
        for (left, freed) in std::iter::once((0, 0)).chain(ends) {
            used = used.saturating_sub(freed);
            if used.saturating_add(amount) <= self.rate.limit {
                return left;
            }
        }
        0
    }

    /// In how many milliseconds the first entry ends; `None`: there is none.
    pub(crate) fn next_end_in_ms(&self, facts: &Facts<'_>) -> Option<i64> {
        self.entries.iter().map(|spent| remaining_ms(&spent.ends, facts)).min()
    }

    /// Takes `amount` from now on, for one period.
    pub(crate) fn take(&mut self, attempt: u128, amount: u64, facts: &Facts<'_>) {
        let length_ms = self.rate.period_ms;
        let ends = Moment::after(length_ms, facts);
        self.entries.push(Spent { attempt, amount, ends, length_ms, extra: Map::new() });
        if self.entries.len() > MANY {
            self.merge(facts);
        }
    }

    /// Makes one of old entries that end at about the same time: together they count until the last of them ends. The
    /// grid that tells what is the same time stands still, so an entry moves by less than one step of it, however often.
    fn merge(&mut self, facts: &Facts<'_>) {
        self.entries.sort_by_key(|spent| by_clock_ms(&spent.ends, facts));
        let newest = self.entries.split_off(self.entries.len().saturating_sub(NEWEST));
        let longest = self.entries.iter().map(|spent| spent.length_ms).max().unwrap_or(1);
        let step = (longest / GRAIN).max(1);
        let mut old: BTreeMap<i64, Spent> = BTreeMap::new();
        for spent in std::mem::take(&mut self.entries) {
            let left = by_clock_ms(&spent.ends, facts); // or each machine in turn would move it on
            let at = facts.now.mono_ms.saturating_add(left).div_euclid(step);
            let amount = old.get(&at).map_or(0, |earlier| earlier.amount).saturating_add(spent.amount);
            let length_ms = old.get(&at).map_or(0, |earlier| earlier.length_ms).max(spent.length_ms);
            // All on this machine's clock, or their ends would not compare.
            old.insert(at, Spent { amount, length_ms, ends: Moment::after(left, facts), ..spent });
        }
        self.entries = old.into_values().chain(newest).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Life, Now, Place};

    fn at<T>(ms: i64, tell: impl FnOnce(&Facts<'_>) -> T) -> T {
        let place = Place { boot: "b".to_owned(), ..Place::default() };
        tell(&Facts {
            now: Now { wall_ms: ms, mono_ms: ms },
            place: &place,
            life: Life::Unknown,
            needs: &[],
            scope: None,
            skew_ms: 0,
        })
    }

    fn quota(rate: &str) -> Quota {
        Quota::new(Name::new("q").unwrap(), Rate::parse(rate).unwrap())
    }

    #[test]
    fn a_rate_is_within_its_bounds() {
        for text in ["1/1s", "100/1h", "1000000/30d", "5/1500ms"] {
            assert!(Rate::parse(text).is_ok(), "{text}");
        }
        for text in
            ["", "5", "/1h", "5/", "0/1h", "-1/1h", "1000001/1h", "5/999ms", "5/31d", "5/1h/1h", "x/1h"]
        {
            assert_eq!(Rate::parse(text).map_err(|e| e.code()), Err(crate::Code::Usage), "{text:?}");
        }
    }

    #[test]
    fn what_was_taken_counts_to_the_end_of_its_window() {
        let mut quota = quota("10/1s");
        at(0, |facts| quota.take(1, 4, facts));
        at(500, |facts| quota.take(2, 5, facts));
        let expected =
            [(999, 9, [0, 1, 501]), (1_000, 5, [0, 0, 500]), (1_499, 5, [0, 0, 1]), (1_500, 0, [0; 3])];
        for (now, used, free) in expected {
            at(now, |facts| {
                assert!(!quota.settle(facts));
                assert_eq!(quota.used(), used, "{now}");
                assert_eq!([1, 5, 10].map(|asked| quota.free_in_ms(asked, facts)), free, "{now}");
            });
        }
    }

    #[test]
    fn an_end_that_can_not_be_believed_becomes_one_by_this_clock() {
        let mut quota = quota("10/1s");
        at(900_000, |facts| quota.take(1, 4, facts));
        at(10, |facts| {
            assert!(quota.settle(facts));
            assert_eq!((quota.used(), quota.free_in_ms(10, facts)), (4, 1_000));
            assert!(!quota.settle(facts));
        });
    }

    /// However many there were: the record stays small, forgets nothing before its time, and keeps nothing for much
    /// longer.
    #[test]
    fn many_entries_become_few() {
        let mut quota = quota("1000000/128s");
        let (step, every) = (1_000, 37);
        for n in 0..20_000_i64 {
            let now = n * every;
            at(now, |facts| {
                quota.settle(facts);
                quota.take(n as u128, 1, facts);
            });
            assert!(quota.entries.len() <= MANY, "{}", quota.entries.len());
            let exact = n.min((128_000 - 1) / every) as u64 + 1;
            let most = exact + (step / every) as u64 + 1;
            assert!((exact..=most).contains(&quota.used()), "{} is not in {exact}..={most}", quota.used());
        }
    }
}
