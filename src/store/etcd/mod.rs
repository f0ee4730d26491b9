//! A claim directory on etcd, for workers on more than one machine: the same keys and records as in files.
//!
//! ```text
//! engine  ->  kv (range, transaction, delete)  ->  http (endpoints, retries, users)  ->  etcd's JSON gateway
//!    |
//!    +->  pieces (what is larger than one request), log (a key a line), watch (a hint), health (endpoints and clocks)
//! ```
//!
//! Every change is one transaction: made where nothing was, replaced where the value is the one expected. Reads are
//! linearizable. A request that timed out may have been carried out all the same: it is sent again, which does no
//! harm since it compares, and what then stands tells whose it is.
//!
//! Keys, below the address's prefix: `PREFIX//n/ID` nodes, `PREFIX//s/NAME` all that is no node, `PREFIX//p/NAME//NUMBER`
//! pieces of what is too large for one request, `PREFIX//s/NAME//RANDOM` the lines of a log, `PREFIX//format`. No prefix and no name has two slashes in a row, so one
//! directory's keys never begin as another's do.

mod address;
mod engine;
mod health;
mod http;
mod kv;
mod log;
mod pieces;
mod tls;
mod watch;

pub use address::Address;
pub use engine::EtcdStore;

use std::time::Duration;

/// How to use a claim directory on etcd.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How far apart the wall clocks of the machines that share it may be, at the most. A lease of another machine is
    /// taken over so much later, and a holder trusts its own so much shorter.
    pub max_skew: Duration,
}

impl Options {
    /// Unless said otherwise: 2 seconds.
    pub const DEFAULT_SKEW: Duration = Duration::from_secs(2);
}

impl Default for Options {
    fn default() -> Options {
        Options { max_skew: Options::DEFAULT_SKEW }
    }
}
