//! The engine's calls.

use std::io::Read;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{Client, Failure, too_large};
use super::kv::{self, Kv, base64, end_of};
use super::log::Logs;
use super::pieces::{self, Form, Reader, Writer, form_of};
use super::{Address, Options, health, watch};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::store::{
    Along, Finding, Glimpse, Key, Logged, MAX_CELL_BYTES, Measured, Prefix, Replaced, Store, Stretch, Watch,
};

/// The layout's version.
const FORMAT: u64 = 1;
/// How many keys are listed at once.
const PAGE: usize = 4096;
/// The same where only the next part of their names counts: all that share one are passed over at once.
const PARTS: usize = 16;
/// The most operations of one transaction, unless etcd is told otherwise.
const MOST_STEPS: usize = 128;
/// Idle waiters of many machines look this often: each look is some requests.
const GLANCE: Duration = Duration::from_millis(200);
/// Up to which size the expected value is sent along to be compared. A larger one is read and compared here, which
/// costs a round trip and spares the room for the new value.
const BY_VALUE: usize = 64 << 10;

/// A claim directory on etcd as a store.
pub struct EtcdStore {
    kv: Arc<Kv>,
    keys: Keys,
    max_skew: Duration,
    logs: Logs,
    /// Is the format known to be one that this program knows?
    known: AtomicBool,
    /// Is it known to be written down?
    made: AtomicBool,
}

/// Who made a key.
#[derive(PartialEq, Eq)]
enum Made {
    Mine,
    Others,
    /// It has another value by now, and whoever made it can't be told.
    Unclear,
}

/// How keys are named in etcd.
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn of(&self, key: &Key) -> String {
        let kind = if matches!(key, Key::Node(_)) { "n" } else { "s" };
        format!("{}//{kind}/{}", self.prefix, key.name())
    }

    /// All keys of one kind begin so.
    fn kind(&self, kind: &str) -> String {
        format!("{}//{kind}/", self.prefix)
    }

    fn format(&self) -> String {
        format!("{}//format", self.prefix)
    }

    fn pieces(&self, key: &Key) -> String {
        format!("{}//p/{}//", self.prefix, key.name())
    }

    pub(super) fn piece(&self, key: &Key, number: u64) -> String {
        format!("{}{number:08x}", self.pieces(key))
    }

    /// All lines of a log begin so.
    pub(super) fn lines(&self, key: &Key) -> String {
        format!("{}//", self.of(key))
    }

    /// What removes an entry, with its pieces if it has any, or a log.
    pub(super) fn removal(&self, key: &Key) -> Vec<Value> {
        let below = [self.pieces(key), self.lines(key)];
        let below = below.iter().map(|below| kv::delete_below(below));
        [kv::delete(&self.of(key))].into_iter().chain(below).collect()
    }
}

impl EtcdStore {
    /// Gets ready to talk to etcd; nothing is sent before the first call.
    pub fn open(address: &Address, options: Options, host: Arc<dyn Host>) -> Result<EtcdStore> {
        let client = Client::new(address, host)?;
        Ok(EtcdStore {
            kv: Arc::new(Kv::new(client)),
            keys: Keys { prefix: address.prefix().to_owned() },
            max_skew: options.max_skew,
            logs: Logs::default(),
            known: AtomicBool::new(false),
            made: AtomicBool::new(false),
        })
    }

    /// Before the first read: a newer format is refused.
    fn know(&self) -> Result<&Kv> {
        if !self.known.load(Ordering::Relaxed) {
            let format = self.kv.read(&self.keys.format())?;
            self.learn(format)?;
        }
        Ok(&self.kv)
    }

    fn learn(&self, format: Option<kv::Pair>) -> Result<()> {
        if let Some(pair) = format {
            self.admit_format(&pair.value)?;
            self.made.store(true, Ordering::Relaxed);
        }
        self.known.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// What each of `ranges` gives, as of one moment. The first time the format comes with it: one journey for two.
    fn ask(&self, mut ranges: Vec<Value>) -> Result<Vec<kv::Ranged>> {
        if self.known.load(Ordering::Relaxed) {
            return self.kv.ranges(&ranges);
        }
        ranges.push(kv::one(&self.keys.format()));
        let mut all = self.kv.ranges(&ranges)?;
        self.learn(all.pop().and_then(kv::Ranged::first))?;
        Ok(all)
    }

    /// The value at the key of `key`, as it stands in etcd.
    fn pair(&self, key: &Key) -> Result<Option<kv::Pair>> {
        let name = self.keys.of(key);
        match self.known.load(Ordering::Relaxed) {
            true => self.kv.read(&name),
            false => Ok(self.ask(vec![kv::one(&name)])?.pop().and_then(kv::Ranged::first)),
        }
    }

    /// The cell or entry that the value at its own key tells.
    fn whole(&self, key: &Key, pair: Option<kv::Pair>) -> Result<Option<Vec<u8>>> {
        let Some(pair) = pair else { return Ok(None) };
        match form_of(pair.value) {
            Form::Whole(bytes) => Ok(Some(bytes)),
            Form::Unfinished => Ok(None),
            Form::Pieces(count) => {
                let reader = self.reader(key, count, pair.at);
                pieces::read_whole(reader, MAX_CELL_BYTES, &self.place(Some(key))).map(Some)
            }
        }
    }

    fn admit_format(&self, value: &[u8]) -> Result<()> {
        let says: Value = serde_json::from_slice(value).unwrap_or_default();
        let place = format!("{} (key {})", self.kv.client.address(), self.keys.format());
        match says["format"].as_u64() {
            Some(format) if format > FORMAT => {
                let message = format!("{place} is of format {format}, and this program knows {FORMAT}");
                Err(Error::new(Code::FormatTooNew, message).hint("use a newer claim"))
            }
            Some(_) => Ok(()),
            None => {
                let message = format!("{place} is not a claim directory's format");
                Err(Error::new(Code::RecordUnreadable, message).hint("name another prefix"))
            }
        }
    }

    /// Before the first write: the format is written down, and an etcd that lets it be made twice is none.
    fn ready(&self) -> Result<&Kv> {
        self.know()?;
        if !self.made.load(Ordering::Relaxed) {
            let name = self.keys.format();
            let value = json!({"format": FORMAT}).to_string();
            self.create(&name, value.as_bytes())?;
            if self.kv.change(&[kv::is_absent(&name)], &[], &[])?.succeeded {
                let message = "etcd does not keep what it was given: a key that was made is not there";
                return Err(Error::new(Code::StoreUnavailable, message));
            }
            self.made.store(true, Ordering::Relaxed);
        }
        Ok(&self.kv)
    }

    /// Makes a key. Of a try whose answer was lost the value tells whose it is.
    fn create(&self, name: &str, value: &[u8]) -> Result<Made> {
        let made = self.kv.change(&[kv::is_absent(name)], &[kv::put(name, value)], &[kv::get(name)])?;
        Ok(match made {
            made if made.succeeded => Made::Mine,
            made if !made.in_doubt => Made::Others,
            made if made.found.as_deref() == Some(value) => Made::Mine,
            _ => Made::Unclear,
        })
    }

    fn reader(&self, key: &Key, count: u64, at: i64) -> Reader {
        Reader::new(self.kv.clone(), &self.keys, key, count, at)
    }

    /// The first and the end of the range of keys under `prefix` that come after `after`, and how many bytes of each
    /// come before its name.
    fn bounds(&self, prefix: &Prefix<'_>, after: Option<&str>) -> (String, String, usize) {
        let (kind, folder) = match prefix {
            Prefix::Nodes => (self.keys.kind("n"), None),
            Prefix::Below(folder) => (self.keys.kind("n"), Some(folder)),
            Prefix::Internal(folder) => (self.keys.kind("s"), Some(folder)),
        };
        let below = folder.map_or_else(|| kind.clone(), |folder| format!("{kind}{folder}/"));
        let next = after.map(|after| format!("{kind}{after}\0"));
        let first = next.filter(|next| *next > below).unwrap_or_else(|| below.clone());
        (first, end_of(&below), kind.len())
    }

    /// Puts a value whatever is there.
    fn put(&self, name: &str, value: &[u8]) -> Result<()> {
        self.ready()?.change(&[], &[kv::put(name, value)], &[])?;
        Ok(())
    }

    /// Swaps `expected`, or nothing, for `new`, with what goes along.
    fn swap(
        &self,
        name: &str,
        expected: Option<&[u8]>,
        new: &[u8],
        along: &[Value],
    ) -> Result<Replaced, Failure> {
        let failed = |error| Failure { error, in_doubt: false };
        let compare = match expected {
            None => kv::is_absent(name),
            Some(expected) if expected.len() <= BY_VALUE => kv::has_value(name, expected),
            Some(expected) => match self.kv.read(name).map_err(failed)? {
                Some(pair) if pair.value == expected => kv::is_at(name, pair.mod_revision),
                found => return Ok(Replaced::Changed(found.map(|pair| pair.value))),
            },
        };
        let then = [&[kv::put(name, new)], along].concat();
        let done = self.kv.transact(&[compare], &then, &[kv::get(name)])?;
        // No bytes are ever written twice, so those that are there were put by an earlier try of this call.
        if done.succeeded || done.found.as_deref() == Some(new) {
            return Ok(Replaced::Done);
        }
        if done.in_doubt {
            return Ok(Replaced::Unknown(overtaken()));
        }
        Ok(Replaced::Changed(done.found))
    }

    /// What goes with a swap, as operations of the same transaction, in which there is so much room left for lines.
    fn steps(&self, along: &Along, room: usize) -> Result<Vec<Value>> {
        let put = along.put.iter().map(|hint| kv::put(&self.keys.of(hint), b""));
        let remove = along.remove.iter().map(|hint| kv::delete(&self.keys.of(hint)));
        let mut steps: Vec<Value> = put.chain(remove).collect();
        let length: usize = along.log.iter().map(|(_, line)| line.len()).sum();
        if length <= room {
            // Lines of one revision are one key's, or a reader could not tell which it has read.
            for of_one in along.log.chunk_by(|(one, _), (other, _)| one == other) {
                let lines: Vec<&[u8]> = of_one.iter().map(|(_, line)| line.as_slice()).collect();
                if let Some((log, _)) = of_one.first() {
                    steps.push(self.line(log, &lines.join(&b'\n'))?);
                }
            }
        }
        Ok(steps)
    }

    fn line(&self, log: &Key, line: &[u8]) -> Result<Value> {
        let random = self.kv.client.host.random()?;
        Ok(kv::put(&format!("{}{random:032x}", self.keys.lines(log)), line))
    }
}

impl Store for EtcdStore {
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.whole(key, self.pair(key)?)
    }

    fn make(&self, key: &Key) -> Result<bool> {
        self.ready()?;
        Ok(self.create(&self.keys.of(key), b"")? == Made::Mine)
    }

    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        self.replace_along(key, Some(expected), new, &Along::default())
    }

    fn replace_along(
        &self,
        key: &Key,
        expected: Option<&[u8]>,
        new: &[u8],
        along: &Along,
    ) -> Result<Replaced> {
        let Some(room) = pieces::MOST.checked_sub(new.len()) else {
            return Err(too_large(&format!("the record of {key} would have {} bytes", new.len())));
        };
        self.ready()?;
        match self.swap(&self.keys.of(key), expected, new, &self.steps(along, room)?) {
            Err(Failure { error, in_doubt: true }) => Ok(Replaced::Unknown(error)),
            swapped => swapped.map_err(Failure::told),
        }
    }

    fn swaps_along(&self) -> bool {
        true
    }

    /// What was written was kept by most of the machines before anybody was told, and what is read is of that.
    fn confirm(&self, key: &Key) -> Result<()> {
        self.know()?.range(&json!({"key": base64(self.keys.of(key)), "count_only": true})).map(drop)
    }

    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        if !pieces::fits(bytes) {
            return self.publish_from(key, &mut Measured::new(&mut &bytes[..], u64::MAX));
        }
        self.ready()?;
        match (self.create(&self.keys.of(key), bytes)?, key) {
            // A node's record may have been made by this call and gone on in other hands.
            (Made::Unclear, Key::Node(_)) => Err(overtaken()),
            (made, _) => Ok(made == Made::Mine),
        }
    }

    fn makes_whole(&self) -> bool {
        true
    }

    fn publish_from(&self, key: &Key, from: &mut Measured<'_>) -> Result<bool> {
        let mut start = Vec::new();
        let is_more = pieces::fill(&mut start, pieces::MOST, from)?;
        if !is_more && pieces::fits(&start) {
            return self.publish(key, &start);
        }
        let random = self.kv.client.host.random()?;
        Writer { kv: self.ready()?, keys: &self.keys, key, random }.write(&start, from)
    }

    fn open(&self, key: &Key) -> Result<Option<Box<dyn Read + Send>>> {
        let Some(pair) = self.pair(key)? else { return Ok(None) };
        Ok(match form_of(pair.value) {
            Form::Whole(bytes) => Some(Box::new(std::io::Cursor::new(bytes))),
            Form::Pieces(count) => Some(Box::new(self.reader(key, count, pair.at))),
            Form::Unfinished => None,
        })
    }

    fn remove(&self, key: &Key) -> Result<bool> {
        let removed = self.ready()?.change(&[], &self.keys.removal(key), &[])?;
        Ok(removed.deleted > 0)
    }

    fn hint(&self, key: &Key) -> Result<()> {
        self.put(&self.keys.of(key), b"")
    }

    fn keeps_hints(&self) -> bool {
        true
    }

    fn unhint(&self, key: &Key) -> Result<()> {
        self.ready()?.change(&[], &[kv::delete(&self.keys.of(key))], &[]).map(drop)
    }

    fn log(&self, key: &Key, line: &[u8]) -> Result<()> {
        self.ready()?.change(&[], &[self.line(key, line)?], &[]).map(drop)
    }

    fn logged(&self, key: &Key, from: u64, limit: usize) -> Result<Logged> {
        self.logs.read(self.know()?, &self.keys.lines(key), from, limit)
    }

    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        let kv = self.know()?;
        let (mut from, end, cut) = self.bounds(prefix, after);
        let mut found = Vec::new();
        while found.len() < limit && from < end {
            let page = kv.range(&kv::names(&from, &end, PAGE.min(limit - found.len())))?;
            for pair in &page.kvs {
                let name = pair.key.get(cut..).and_then(|name| std::str::from_utf8(name).ok());
                // What nobody here has named so is passed by.
                let key = name.and_then(|name| match prefix {
                    Prefix::Internal(_) => Key::internal(name).ok(),
                    _ => crate::id::NodeId::new(name).map(Key::Node).ok(),
                });
                found.extend(key);
            }
            let Some(last) = page.kvs.last().filter(|_| page.more) else { break };
            from = format!("{}\0", String::from_utf8_lossy(&last.key));
        }
        Ok(found)
    }

    fn parts(&self, folder: &str) -> Result<Vec<String>> {
        let kv = self.know()?;
        let (mut from, end, cut) = self.bounds(&Prefix::Internal(folder), None);
        let cut = cut + folder.len() + 1;
        let mut parts: Vec<String> = Vec::new();
        while from < end {
            let page = kv.range(&kv::names(&from, &end, PARTS))?;
            for pair in &page.kvs {
                let name = pair.key.get(cut..).and_then(|name| std::str::from_utf8(name).ok());
                let part = name.and_then(|name| name.split('/').next()).unwrap_or_default();
                if !part.is_empty() && !parts.iter().rev().any(|known| known == part) {
                    parts.push(part.to_owned());
                }
            }
            let Some(last) = page.kvs.last().filter(|_| page.more) else { break };
            // On after all that is below the last one's part.
            let last = String::from_utf8_lossy(&last.key).into_owned();
            let part_end = last.get(cut..).and_then(|name| name.find('/')).map(|at| cut + at + 1);
            from = match part_end.and_then(|at| last.get(..at)) {
                Some(below) => end_of(below),
                None => format!("{last}\0"),
            };
        }
        parts.sort_unstable();
        Ok(parts)
    }

    fn glimpse(&self, cells: &[Key], lists: &[Stretch]) -> Result<Option<Glimpse>> {
        if cells.len() + lists.len() >= MOST_STEPS {
            return Ok(None);
        }
        let mut ranges: Vec<Value> = cells.iter().map(|key| kv::one(&self.keys.of(key))).collect();
        ranges.extend(lists.iter().map(|list| {
            let (from, end, _) = self.bounds(&Prefix::Internal(&list.folder), list.after.as_deref());
            kv::names(&from, &end, list.limit)
        }));
        let (mut glimpse, mut all) = (Glimpse::default(), self.ask(ranges)?.into_iter());
        for (key, found) in cells.iter().zip(all.by_ref()) {
            glimpse.add_cell(key.clone(), self.whole(key, found.first())?);
        }
        let cut = self.keys.kind("s").len();
        for (list, page) in lists.iter().zip(all) {
            // What can't be read as a name is none of this directory's.
            let name = |pair: &kv::Pair| String::from_utf8(pair.key.get(cut..)?.to_vec()).ok();
            glimpse.add_names(list, page.kvs.iter().filter_map(name).collect(), !page.more);
        }
        Ok(Some(glimpse))
    }

    fn watch(&self, key: &Key) -> Box<dyn Watch + '_> {
        self.watch_any(std::slice::from_ref(key))
    }

    fn watch_any(&self, keys: &[Key]) -> Box<dyn Watch + '_> {
        let range = |key: &Key| match key {
            Key::Node(_) => (self.keys.of(key), None),
            // It may be a log, whose lines come right after it.
            Key::Internal(_) => (self.keys.of(key), Some(end_of(&self.keys.lines(key)))),
        };
        Box::new(watch::EtcdWatch::new(self.kv.clone(), keys.iter().map(range).collect()))
    }

    fn prepare(&self) -> Result<bool> {
        self.know()?;
        let missing = !self.made.load(Ordering::Relaxed);
        self.ready()?;
        Ok(missing)
    }

    fn glance(&self) -> Duration {
        GLANCE
    }

    fn skew(&self) -> Duration {
        self.max_skew
    }

    fn place(&self, key: Option<&Key>) -> String {
        let address = self.kv.client.address();
        match key {
            None => address.to_string(),
            // The key as etcd has it comes last: for `etcdctl get`.
            Some(key) => {
                let whole = self.keys.of(key);
                format!("{address}{}", whole.strip_prefix(address.prefix()).unwrap_or(&whole))
            }
        }
    }

    fn inspect(&self) -> Result<Vec<Finding>> {
        self.know()?;
        Ok(health::inspect(&self.kv.client, self.max_skew))
    }
}

/// The answer to a change was lost, and what there is now does not tell whether it was made.
fn overtaken() -> Error {
    Error::new(Code::StoreUnavailable, "etcd gave no answer in time, and others have written since")
}

/// Waits without looking out for anything: for others only.
pub(super) fn poll_for(timeout: Duration, fds: &[BorrowedFd<'_>]) -> rustix::io::Result<usize> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    poll(&mut fds, Some(&timeout))
}
