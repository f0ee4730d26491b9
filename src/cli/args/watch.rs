//! The arguments of `claim watch`.

use std::time::Duration;

use claimdir::time::parse_duration;
use claimdir::{Error, Result};

use super::Filter;

/// A live board: what runs where, what waits for what, what failed.
///
/// It shows who holds which node and for how long, what each other node waits for, what failed and why, the queues with
/// the pools and quotas, and what happened last. Press ? for the keys, q to quit. It looks only: nothing is written.
/// Colours are left out where NO_COLOR is set.
///
/// However many nodes there are, reading them takes less than a tenth of one processor: the interval gets longer
/// where it must.
#[derive(clap::Args, Debug)]
pub(crate) struct Watch {
    /// How often it reads again: 250ms to 1h
    #[arg(long, value_name = "1s", default_value = "1s", value_parser = parse_interval)]
    pub(crate) interval: Duration,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Print the board once, as plain text, and end; with --json, what it is made of. As wide and high as the terminal
    /// is, or as $COLUMNS and $LINES say, or 80 by 24
    #[arg(long)]
    pub(crate) once: bool,
}

fn parse_interval(text: &str) -> Result<Duration> {
    let interval = parse_duration(text)?;
    if interval < Duration::from_millis(250) || interval > Duration::from_secs(3600) {
        return Err(Error::usage(format!("an interval is from 250ms to 1h, not {text}")));
    }
    Ok(interval)
}
