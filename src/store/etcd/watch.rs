//! A hint that something has changed, from etcd's stream of changes.
//!
//! A thread reads the stream, from the revision after the newest one that was seen, so no change between the last
//! read and the stream's start is missed. A stream that ends, or that etcd ends since it has forgotten that revision,
//! wakes too: whoever waits reads again, and the next wait begins a new one.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::kv::{Kv, base64};
use crate::store::Watch;

/// How long a wait lasts at most, in case that no word comes.
const NAP: Duration = Duration::from_secs(5);
/// How long nothing is asked for after a stream that failed.
const REST: Duration = Duration::from_millis(300);
/// The most keys that are told one by one; more than that, and each change of the directory wakes.
const SINGLY: usize = 16;

/// Looks out for changes of some keys.
pub(super) struct EtcdWatch {
    kv: Arc<Kv>,
    /// Keys, or all from one on and before another.
    ranges: Vec<(String, Option<String>)>,
    since: i64,
    stream: Option<Stream>,
}

/// A stream being read.
struct Stream {
    /// Readable once something has changed or the stream has ended.
    woken: PipeReader,
    /// Nobody listens any more.
    left: Arc<AtomicBool>,
    /// The stream has ended.
    ended: Arc<AtomicBool>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.left.store(true, Ordering::Relaxed);
    }
}

impl EtcdWatch {
    pub(super) fn new(kv: Arc<Kv>, ranges: Vec<(String, Option<String>)>) -> EtcdWatch {
        let since = kv.revision();
        EtcdWatch { kv, ranges, since, stream: None }
    }

    /// What is asked for: one object after the other.
    fn requests(&self) -> String {
        let prefix = format!("{}//", self.kv.client.address().prefix());
        let since = (self.since + 1).to_string();
        let one = |range: Value| {
            let mut create = range;
            create["start_revision"] = Value::from(since.as_str());
            json!({"create_request": create}).to_string()
        };
        if self.ranges.len() > SINGLY {
            let end = super::kv::end_of(&prefix);
            return one(json!({"key": base64(&prefix), "range_end": base64(end)}));
        }
        let asked = |(from, end): &(String, Option<String>)| match end {
            Some(end) => one(json!({"key": base64(from), "range_end": base64(end)})) + "\n",
            None => one(json!({"key": base64(from)})) + "\n",
        };
        self.ranges.iter().map(asked).collect()
    }

    /// The stream, begun if there is none. `None`: it can't be had now.
    fn stream(&mut self) -> Option<&Stream> {
        if self.stream.as_ref().is_none_or(|stream| stream.ended.load(Ordering::Relaxed)) {
            self.stream = None;
            let (woken, wake) = std::io::pipe().ok()?;
            rustix::io::ioctl_fionbio(&woken, true).ok()?;
            rustix::io::ioctl_fionbio(&wake, true).ok()?;
            let stream = Stream { woken, left: Arc::default(), ended: Arc::default() };
            let (left, ended) = (stream.left.clone(), stream.ended.clone());
            let (kv, requests) = (self.kv.clone(), self.requests());
            let listen = move || {
                listen(&kv, &requests, &wake, &left);
                ended.store(true, Ordering::Relaxed);
                tell(&wake);
            };
            std::thread::Builder::new().name("claim-etcd".to_owned()).spawn(listen).ok()?;
            self.stream = Some(stream);
        }
        self.stream.as_ref()
    }
}

/// Reads the stream to its end.
fn listen(kv: &Kv, requests: &str, wake: &PipeWriter, left: &AtomicBool) {
    let Ok(stream) = kv.client.stream("/v3/watch", requests.as_bytes()) else {
        return kv.client.host.pause(REST);
    };
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    while !left.load(Ordering::Relaxed) {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(count) if count > 0 => {}
            _ => return,
        }
        let says: Value = serde_json::from_slice(&line).unwrap_or_default();
        let result = &says["result"];
        if result["canceled"].as_bool() == Some(true) || says["error"].is_object() {
            return kv.client.host.pause(REST);
        }
        if result["events"].as_array().is_some_and(|events| !events.is_empty()) {
            tell(wake);
        }
    }
}

fn tell(mut wake: &PipeWriter) {
    let _ = wake.write(b"!"); // full: somebody will wake anyway
}

impl Watch for EtcdWatch {
    fn wait(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]) {
        let timeout = timeout.min(NAP);
        let Some(stream) = self.stream() else {
            let _ = super::engine::poll_for(timeout.min(REST), others);
            return;
        };
        let fds: Vec<BorrowedFd<'_>> =
            std::iter::once(stream.woken.as_fd()).chain(others.iter().copied()).collect();
        let _ = super::engine::poll_for(timeout, &fds);
        let _ = (&stream.woken).read(&mut [0; 256]);
        // What is read from here on is of this revision or a later one.
        self.since = self.kv.revision().max(self.since);
    }
}
