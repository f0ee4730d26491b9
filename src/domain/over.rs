//! Writing down that a claim is over, without taking the node.

use super::record::{Claim, Moment, Node, Outcome, State, WriteId};
use super::standing::{Facts, Standing, standing};

/// The record of a node whose claim is over: ready, its attempt counted, or failed if that was the last one. An
/// end that can't be believed becomes one that this machine's clock can reach. `None`: nothing of that is so.
pub(crate) fn over(node: &Node, facts: &Facts<'_>, write: WriteId) -> Option<Node> {
    match standing(node, facts) {
        Standing::Lapsed { .. } => Some(node.next(write, State::Ready)),
        Standing::Spent { claim } => Some(spent(node, claim, facts, write)),
        Standing::Adrift { claim } => Some(rebased(node, claim, facts, write)),
        _ => None,
    }
}

/// Failed, since the last attempt is over.
pub(super) fn spent(node: &Node, claim: &Claim, facts: &Facts<'_>, write: WriteId) -> Node {
    let reason = format!("its attempts are used up: the lease of attempt {} ended", node.attempt);
    node.next(write, State::Failed(Outcome::without_result(node, facts.now.wall_ms, &claim.owner, reason)))
}

/// The claim with an end by this machine's clock: the holder keeps its full lease once.
pub(super) fn rebased(node: &Node, claim: &Claim, facts: &Facts<'_>, write: WriteId) -> Node {
    let ends = Moment::after(claim.lease_ms, facts);
    node.next(write, State::Claimed(Claim { ends, ..claim.clone() }))
}
