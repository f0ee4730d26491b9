//! What stands in a claim's way that is shared: paths that others have, pools and quotas that have not enough.

use super::quota::Rate;
use super::record::{Name, RepoPath};
use super::refusal::Holder;
use crate::id::NodeId;
use crate::time::human;

/// A path asked for and the one that is in its way.
#[derive(Clone, Debug, PartialEq)]
pub struct PathClash {
    /// The path asked for.
    pub path: RepoPath,
    /// The path reserved: the same, above or below.
    pub reserved: RepoPath,
    /// The node whose claim has it.
    pub node: NodeId,
    /// Who holds that node; `None`: its record can't be read.
    pub holder: Option<Holder>,
}

impl PathClash {
    pub(super) fn message(&self) -> String {
        let PathClash { path, reserved, node, holder } = self;
        let what = if path == reserved {
            format!("the path {path} is reserved")
        } else {
            format!("the path {path} clashes with {reserved}, which is reserved")
        };
        match holder {
            Some(holder) => format!(
                "{what} by {} with {node} (generation {}, {})",
                holder.owner,
                holder.generation,
                holder.until()
            ),
            None => format!("{what} with {node}, whose record can't be read"),
        }
    }
}

/// A pool without a free slot.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolFull {
    /// The pool.
    pub pool: Name,
    /// How many slots it has.
    pub slots: u64,
    /// How many nodes have one: more than there are, where there were more before.
    pub used: u64,
    /// The node whose claim ends first.
    pub node: NodeId,
    /// Who holds that node; `None`: not one of the nodes can be read.
    pub holder: Option<Holder>,
    /// All nodes that have a slot, in order.
    pub nodes: Vec<NodeId>,
}

impl PoolFull {
    pub(super) fn message(&self) -> String {
        let PoolFull { pool, slots, used, node, holder, .. } = self;
        let what = format!("the pool {pool} is full: {used} of {slots} slots are taken");
        match holder {
            Some(holder) => format!(
                "{what}, first to end is that of {} with {node} (generation {}, {})",
                holder.owner,
                holder.generation,
                holder.until()
            ),
            None => format!("{what}, by {node} and others whose records can't be read"),
        }
    }
}

/// A quota of which not enough is left.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaUsed {
    /// The quota.
    pub quota: Name,
    /// How much of it there is.
    pub rate: Rate,
    /// How much of that was taken within the last period.
    pub used: u64,
    /// How much was asked for.
    pub asked: u64,
    /// In how many milliseconds that can be had, if nobody else takes it.
    pub free_in_ms: i64,
}

impl QuotaUsed {
    pub(super) fn message(&self) -> String {
        let QuotaUsed { quota, rate, used, asked, free_in_ms } = self;
        if self.is_hopeless() {
            return format!("the quota {quota} is {rate}: {asked} can never be had of it");
        }
        let when = human(*free_in_ms);
        format!("the quota {quota} is used up: {used} of {rate}, and {asked} asked for is free in {when}")
    }

    /// Is more asked for than there can be?
    pub fn is_hopeless(&self) -> bool {
        self.asked > self.rate.limit()
    }
}
