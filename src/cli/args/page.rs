//! The arguments of `claim report`.

use std::path::PathBuf;

use claimdir::time::{When, parse_when};

/// Write a page that shows who had what, and when: a timeline, what went wrong, and totals.
///
/// The page is one file that needs nothing else. It is made of the records and the journal, with --scope of that scope's.
/// It replaces a file that is there, whole, and nothing that is no regular file.
#[derive(clap::Args, Debug)]
pub(crate) struct Page {
    /// Where to write the page; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) html: PathBuf,
    /// Only what happened from then on: so long ago, or an RFC 3339 time
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    pub(crate) since: Option<When>,
}
