//! Logs: a key for what one change says, in the order in which etcd took them in.
//!
//! A position is the revision of the key that comes next and how much of its value was read before. Etcd sorts by
//! revision only what it has read whole, so many are got at once and kept for the next call.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use super::kv::{Kv, base64, end_of};
use crate::error::Result;
use crate::store::Logged;

/// How many lines are got at once.
const PAGE: usize = 4096;
/// How many bits of a position count the bytes of a line.
const OFFSET: u32 = 16;

/// What was got of a log and not read yet.
#[derive(Default)]
pub(super) struct Logs(Mutex<Ahead>);

#[derive(Default)]
struct Ahead {
    /// Of which log, and from which position on.
    of: (String, u64),
    lines: VecDeque<Line>,
}

struct Line {
    revision: u64,
    bytes: Vec<u8>,
}

impl Logs {
    /// As [`Store::logged`](crate::store::Store::logged); all keys of the log's lines begin with `below`.
    pub(super) fn read(&self, kv: &Kv, below: &str, from: u64, limit: usize) -> Result<Logged> {
        if limit == 0 {
            return Ok(Logged { bytes: Vec::new(), next: from });
        }
        let kept = self.0.lock().map(|mut kept| std::mem::take(&mut *kept));
        let mut ahead = kept.unwrap_or_else(|poisoned| std::mem::take(&mut *poisoned.into_inner()));
        if ahead.lines.is_empty() || ahead.of != (below.to_owned(), from) {
            ahead = Ahead { of: (below.to_owned(), from), lines: lines(kv, below, from >> OFFSET, limit)? };
        }
        let logged = ahead.read(from, limit);
        ahead.of.1 = logged.next;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = ahead;
        Ok(logged)
    }
}

impl Ahead {
    fn read(&mut self, from: u64, limit: usize) -> Logged {
        let mut logged = Logged { bytes: Vec::new(), next: from };
        while let Some(line) = self.lines.front() {
            let begun = match logged.next >> OFFSET == line.revision {
                true => usize::try_from(logged.next & ((1 << OFFSET) - 1)).unwrap_or(usize::MAX),
                false => 0,
            };
            let rest = line.bytes.get(begun..).unwrap_or_default();
            let piece = rest.get(..limit - logged.bytes.len()).unwrap_or(rest);
            logged.bytes.extend_from_slice(piece);
            if piece.len() < rest.len() {
                logged.next = (line.revision << OFFSET) + (begun + piece.len()) as u64;
                break;
            }
            logged.next = (line.revision + 1) << OFFSET;
            self.lines.pop_front();
        }
        logged
    }
}

/// The lines from a revision on.
fn lines(kv: &Kv, below: &str, from: u64, limit: usize) -> Result<VecDeque<Line>> {
    let range = json!({
        "key": base64(below),
        "range_end": base64(end_of(below)),
        "limit": limit.min(PAGE).to_string(),
        "min_mod_revision": from.to_string(),
        "sort_order": "ASCEND",
        "sort_target": "MOD",
    });
    let line = |pair: super::kv::Pair| {
        // A line is no longer than a position can say.
        let mut bytes = pair.value;
        bytes.truncate((1 << OFFSET) - 1);
        bytes.push(b'\n');
        Line { revision: u64::try_from(pair.mod_revision).unwrap_or(0), bytes }
    };
    Ok(kv.range(&range)?.kvs.into_iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_in_pieces_and_none_twice() {
        let line = |revision: u64, text: &str| Line { revision, bytes: format!("{text}\n").into_bytes() };
        for limit in 1..20 {
            let all = || [line(7, "one"), line(9, "another"), line(10, "")];
            let (mut at, mut bytes) = (0, Vec::new());
            loop {
                // As if it were got anew each time.
                let left = all().into_iter().filter(|line| line.revision >= at >> OFFSET).collect();
                let read = Ahead { of: Default::default(), lines: left }.read(at, limit);
                assert!(read.bytes.len() <= limit);
                if read.bytes.is_empty() {
                    break;
                }
                bytes.extend(read.bytes);
                at = read.next;
            }
            assert_eq!(bytes, b"one\nanother\n\n", "{limit}");
        }
    }
}
