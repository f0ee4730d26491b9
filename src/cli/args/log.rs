//! The arguments of `claim log`.

use super::number::number;
use claimdir::time::{When, parse_when};

/// Show what happened, the oldest first: to one node, to a scope's, to all.
///
/// A line is a time in UTC, what happened, the node, and who did it: added, claimed, reclaimed (after another's claim was
/// over), forced, progress, released, retried, given_back (a claim was over, and that was written down), blocked,
/// unblocked, completed, rejected, failed (attempts used up), cancelled, expired, requeued, reviewed, noted, joined,
/// detached, pruned. Renewals are not told. It is for people: what is so, the records say (`claim show`).
///
/// With --json it is one object with all `events`; with --follow and --json each event is an object on a line of its own,
/// as it happens.
#[derive(clap::Args, Debug)]
pub(crate) struct Log {
    /// Only of this node
    pub(crate) id: Option<String>,
    /// Go on with what happens, until SIGINT or SIGTERM, or until nobody reads it any more; that is exit 0
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only from then on: so long ago, or an RFC 3339 time
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    pub(crate) since: Option<When>,
    /// Only the newest so many; with --follow, of what was there before
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<usize>(0..=u64::MAX))]
    pub(crate) limit: Option<usize>,
}
