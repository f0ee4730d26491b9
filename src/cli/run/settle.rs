//! Settling a claim as its command's end asks for.

use claimdir::domain::{Fate, Retry, State, Text};
use claimdir::{Directory, Lease, Refusal, Unsettled};
use serde_json::Value;

use super::report::Settled;
use super::supervise::became;

/// What becomes of the node.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// It is done.
    Complete(Value),
    /// It goes back, and the attempt with it.
    Release,
    /// It goes back for another attempt; why.
    Retry(String),
    /// It has failed, for good; why.
    Reject(Text),
}

/// What came of that.
pub(crate) enum Settlement {
    Settled(Settled),
    /// It was lost before.
    Lost(Refusal),
    /// It can be tried again.
    Not(Box<Unsettled>),
}

/// Settles the claim.
pub(crate) fn settle(directory: &Directory, lease: Lease, end: End) -> Settlement {
    let taken = lease.acquired().node.clone();
    let (settled, word) = match end {
        End::Complete(result) => (lease.complete(&result), Settled::Completed),
        End::Release => (lease.release(), Settled::Released),
        End::Retry(reason) => {
            let how = Retry { reason: Some(reason), ..Retry::default() };
            (lease.retry(&how), Settled::Retried)
        }
        End::Reject(reason) => (lease.reject(Some(&reason)), Settled::Rejected),
    };
    match settled {
        Ok(Ok(written)) if written.replay => Settlement::Settled(Settled::Left),
        Ok(Ok(written)) => {
            let failed = matches!(written.node.state, State::Failed(_)) && word == Settled::Retried;
            Settlement::Settled(if failed { Settled::Failed } else { word })
        }
        Ok(Err(refusal)) => match became(directory, &taken) {
            Fate::Settled => Settlement::Settled(Settled::Left),
            Fate::Named | Fate::Lost => Settlement::Lost(refusal),
        },
        Err(unsettled) => Settlement::Not(unsettled),
    }
}
