//! Quotas: so much per so long, whatever becomes of the claims that took it.

use super::Directory;
use super::reserve::{Mark, Step1};
use super::roster::Change;
use crate::domain::{Facts, Name, Quota, QuotaUsed, Rate, Reason, WriteId, decode_quota, encode_quota};
use crate::error::Result;
use crate::host::Life;
use crate::store::{Key, Prefix};

/// The folder of quotas.
const QUOTAS: &str = "rosters/quotas";

/// A quota, and how much of it is used.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaSeen {
    /// Its name.
    pub name: Name,
    /// How much there is.
    pub rate: Rate,
    /// How much was taken within the last period.
    pub used: u64,
    /// In how many milliseconds more of it is free; `None`: all of it is.
    pub next_free_in_ms: Option<i64>,
}

impl Directory {
    /// Sets how much there is of the quota, making it if there is none. What was taken before counts as long as it
    /// would have. `false`: it is so already.
    pub fn set_quota(&self, name: &Name, rate: Rate) -> Result<bool> {
        let key = quota_key(name)?;
        let changed = self.change(&key, |bytes| {
            let quota = match self.decode_quota(&key, bytes)? {
                Some(quota) => {
                    self.is_of(&key, name, &quota.name)?;
                    if quota.rate == rate {
                        return Ok(Change::Keep(false));
                    }
                    Quota { rate, ..quota }
                }
                None => Quota::new(name.clone(), rate),
            };
            self.quota_changed(quota, true)
        })?;
        if !changed {
            self.store.confirm(&key)?;
        }
        Ok(changed)
    }

    /// The quota and how much of it is used; `None`: nobody has set it. Writes nothing.
    pub fn quota(&self, name: &Name) -> Result<Option<QuotaSeen>> {
        let key = quota_key(name)?;
        let Some(quota) = self.read_quota(&key)? else { return Ok(None) };
        self.is_of(&key, name, &quota.name)?;
        Ok(Some(self.quota_seen(quota)))
    }

    /// All quotas, in order. Writes nothing.
    pub fn quotas(&self) -> Result<Vec<QuotaSeen>> {
        let mut quotas = Vec::new();
        for key in self.quota_keys()? {
            quotas.extend(self.read_quota(&key)?.map(|quota| self.quota_seen(quota)));
        }
        quotas.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(quotas)
    }

    fn quota_seen(&self, mut quota: Quota) -> QuotaSeen {
        self.by_the_clock(|facts| {
            quota.settle(facts);
            let next_free_in_ms = quota.next_end_in_ms(facts);
            QuotaSeen { rate: quota.rate, used: quota.used(), next_free_in_ms, name: quota.name }
        })
    }

    /// Step 1 at a quota: takes `amount` from now on, in place of the own entry `earlier`.
    pub(super) fn spend(&self, key: &Key, name: &Name, amount: u64, earlier: Option<u128>) -> Result<Step1> {
        self.change(key, |bytes| {
            let Some(mut quota) = self.decode_quota(key, bytes)? else {
                return Ok(Change::Keep(Step1::Refused(Reason::NoQuota(name.clone()))));
            };
            self.is_of(key, name, &quota.name)?;
            let attempt = self.host.random()?;
            self.by_the_clock(|facts| {
                quota.entries.retain(|spent| Some(spent.attempt) != earlier);
                let mended = quota.settle(facts);
                if let Some(reason) = short_of(&quota, amount, facts) {
                    let refused = Step1::Refused(reason);
                    // An end set right must be written, or it would be as far away at the next look.
                    return if mended {
                        self.quota_changed(quota, refused)
                    } else {
                        Ok(Change::Keep(refused))
                    };
                }
                quota.take(attempt, amount, facts);
                let ends = facts.now.mono_ms.saturating_add(quota.rate.period_ms());
                self.quota_changed(quota, Step1::Done(Mark { attempt, ends_mono_ms: Some(ends) }))
            })
        })
    }

    /// Takes exactly the own entry out, if it has not become one with others: then it counts.
    pub(super) fn unspend(&self, key: &Key, attempt: u128) -> Result<()> {
        self.change(key, |bytes| {
            let Some(mut quota) = self.decode_quota(key, bytes)? else { return Ok(Change::Keep(())) };
            let before = quota.entries.len();
            quota.entries.retain(|spent| spent.attempt != attempt);
            #[cfg(feature = "testing")]
            if crate::testing::fault("amounts taken out without looking") {
                quota.entries.pop();
            }
            if quota.entries.len() == before {
                return Ok(Change::Keep(()));
            }
            self.quota_changed(quota, ())
        })
    }

    /// What would refuse a claim that takes so much. Writes nothing.
    pub(super) fn would_overspend(&self, key: &Key, name: &Name, amount: u64) -> Result<Option<Reason>> {
        let Some(mut quota) = self.read_quota(key)? else { return Ok(Some(Reason::NoQuota(name.clone()))) };
        self.is_of(key, name, &quota.name)?;
        Ok(self.by_the_clock(|facts| {
            quota.settle(facts);
            short_of(&quota, amount, facts)
        }))
    }

    fn quota_changed<T>(&self, mut quota: Quota, answer: T) -> Result<Change<T>> {
        quota.version += 1;
        Ok(Change::Write(encode_quota(&quota, WriteId::of(self.host.random()?)), answer))
    }

    pub(super) fn by_the_clock<T>(&self, tell: impl FnOnce(&Facts<'_>) -> T) -> T {
        let (now, place) = (self.host.now(), self.host.place());
        tell(&Facts { now, place, life: Life::Unknown, needs: &[], scope: None, skew_ms: self.skew_ms() })
    }

    pub(super) fn quota_keys(&self) -> Result<Vec<Key>> {
        self.store.list(&Prefix::Internal(QUOTAS), None, usize::MAX)
    }

    pub(super) fn read_quota(&self, key: &Key) -> Result<Option<Quota>> {
        let bytes = self.store.read(key)?.unwrap_or_default();
        self.decode_quota(key, &bytes)
    }

    fn decode_quota(&self, key: &Key, bytes: &[u8]) -> Result<Option<Quota>> {
        decode_quota(bytes).map_err(|why| self.unreadable(key, &why))
    }
}

/// Why `amount` can't be had now.
fn short_of(quota: &Quota, asked: u64, facts: &Facts<'_>) -> Option<Reason> {
    let used = quota.used();
    if used.saturating_add(asked) <= quota.rate.limit() {
        return None;
    }
    let free_in_ms = quota.free_in_ms(asked, facts);
    let short = QuotaUsed { quota: quota.name.clone(), rate: quota.rate, used, asked, free_in_ms };
    Some(Reason::QuotaUsed(Box::new(short)))
}

pub(super) fn quota_key(quota: &Name) -> Result<Key> {
    Key::internal(format!("{QUOTAS}/{}", quota.part()))
}
