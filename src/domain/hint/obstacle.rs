//! What holds up a task that could be taken otherwise.

use crate::domain::refusal::Reason;

/// What `reason` says to be in the way, as a part of a hint's name, if it is something that a claim takes along. All
/// tasks that it names are refused as long as one of them is for the same reason: they clash with one reserved path,
/// need a slot of one pool, or the same amount of one quota.
pub(crate) fn obstacle(reason: &Reason) -> Option<String> {
    match reason {
        Reason::PathClash(clash) => {
            let hash = blake3::hash(clash.reserved.as_str().as_bytes()); // it may be longer than a name can be
            Some(format!("path={}", hash.to_hex()))
        }
        Reason::PoolFull(full) => Some(format!("pool={}", full.pool.part())),
        Reason::NoPool(pool) => Some(format!("pool={}", pool.part())),
        Reason::QuotaUsed(used) => Some(format!("quota.{}={}", used.asked, used.quota.part())),
        Reason::NoQuota(quota) => Some(format!("quota={}", quota.part())),
        _ => None,
    }
}
