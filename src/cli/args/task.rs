//! The arguments of what tasks need.

use std::time::Duration;

use super::number::number;
use super::{Held, Once, With};

use claimdir::domain::{Submission, Task};
use claimdir::time::{When, parse_duration, parse_when};

#[derive(clap::Args, Debug)]
pub(crate) struct Retry {
    #[command(flatten)]
    pub(crate) held: Held,
    #[command(flatten)]
    pub(crate) once: Once,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Not before this long from now; never less than the backoff
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) after: Option<Duration>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Reject {
    #[command(flatten)]
    pub(crate) held: Held,
    #[command(flatten)]
    pub(crate) once: Once,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Add {
    /// The task; else one is made up, for a plain message
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) once: Once,
    /// Of a plain message: within its queue, the same key and input again within 7 days is the one that is there
    #[arg(long, value_name = "KEY", conflicts_with = "id")]
    pub(crate) work_key: Option<String>,
    /// What a worker gets: JSON, @FILE or - for standard input. Another input under the same id is refused
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// What a person reads, of 1,024 bytes at most
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// The queue that `next` takes it from
    #[arg(long, value_name = "NAME", env = "CLAIM_QUEUE", default_value = "default")]
    pub(crate) queue: String,
    /// What it belongs to
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// How soon it is its turn: 0, which goes first, to 9
    #[arg(long, value_name = "0-9", default_value_t = 5, allow_negative_numbers = true,
        value_parser = number::<u8>(0..=u64::from(Task::LAST_PRIORITY)))]
    pub(crate) priority: u8,
    /// Only once this task is done and, where it asks for it, accepted; it must have been added before
    #[arg(long, value_name = "ID")]
    pub(crate) after: Vec<String>,
    /// What each claim on it takes along
    #[command(flatten)]
    pub(crate) with: With,
    /// How many attempts it gets
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true,
        value_parser = number::<u64>(1..=Submission::MAX_ATTEMPTS))]
    pub(crate) max_attempts: u64,
    /// Its outcome must be accepted by a reviewer
    #[arg(long)]
    pub(crate) review: bool,
    /// It expires if it has not ended then: a duration from now, or an RFC 3339 time
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    pub(crate) deadline: Option<When>,
    /// Nobody can take it before then: a duration from now, or an RFC 3339 time
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    pub(crate) not_before: Option<When>,
    /// Who is interested in it; may be given several times. Also joins a task that is there and has not ended
    #[arg(long = "subscriber", value_name = "NAME")]
    pub(crate) subscribers: Vec<String>,
}

#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("verdict").required(true).args(["accept", "reject"])))]
pub(crate) struct Review {
    /// The task
    #[arg(env = "CLAIM_ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) once: Once,
    /// Others may build on it
    #[arg(long)]
    pub(crate) accept: bool,
    /// It must be done again
    #[arg(long)]
    pub(crate) reject: bool,
    /// Who reviews; else the owner
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// What to note with it
    #[arg(long)]
    pub(crate) note: Option<String>,
    /// Also if the reviewer did the work
    #[arg(long)]
    pub(crate) allow_self: bool,
    /// Only of the outcome in this version of the record
    #[arg(long, value_name = "VERSION", allow_negative_numbers = true, value_parser = number::<u64>(0..=u64::MAX))]
    pub(crate) seen: Option<u64>,
}
