//! What must hold, checked at every step that publishes a record and at every answer.
//!
//! It sees true time and every write, and judges by the records' bytes and what processes were told.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use claimdir::host::Life;

use super::clock::Reading;
use super::disk::{Disk, hash_of};
use super::judge::{Move, Task, must};
use super::record::Record;

#[derive(Default)]
pub struct Oracle {
    pub nodes: BTreeMap<String, Story>,
    jobs: HashMap<usize, Job>,
    /// What each process has published last: that it knows without reading it.
    known: HashMap<usize, Vec<u8>>,
    pub lives: BTreeMap<u32, Life>,
    /// May somebody outside remove records?
    pub removals: bool,
    answers: u64,
}

/// One node's writes, and who was told what of them.
#[derive(Default)]
pub struct Story {
    pub writes: Vec<Write>,
    /// So many of them must be there for ever: somebody was told so.
    kept: usize,
    issued: BTreeSet<u64>,
    holds: Vec<Record>,
    /// What was answered to the request with the receipt.
    pub answered: Option<String>,
}

pub struct Write {
    pub record: Record,
    bytes: Vec<u8>,
    /// Was the claim in it over before anybody could see it?
    pub late: bool,
}

/// An operation under way in one process.
pub struct Job {
    pub task: Task,
    pub node: String,
    /// The hashes of the tokens that it has.
    pub tokens: Vec<String>,
    /// What stands of what it wrote.
    pub written: Vec<String>,
    read: Option<Basis>,
    /// Was the clock read since?
    clock_read: bool,
    /// Was a successor written down since the clock was read?
    written_down: bool,
    /// Was the claim over by the record that was read and the clock after it? Another call with the same token
    /// may have renewed it in between; to be told that it is over errs on the safe side.
    pub was_lost: bool,
    staged: HashMap<String, Basis>,
}

/// What a decision rests on.
#[derive(Clone)]
struct Basis {
    bytes: Vec<u8>,
    /// Was the claim in them live when they were read?
    live: bool,
    /// Was the clock read after them?
    timed: bool,
    /// Published here, and not read since? Then others may have gone on from them, and only a swap may rest on them.
    recalled: bool,
}

impl Basis {
    fn recalled(bytes: Vec<u8>) -> Basis {
        Basis { bytes, live: false, timed: false, recalled: true }
    }
}

impl Oracle {
    pub fn is_node(&self, path: &str) -> bool {
        path.ends_with(".claim") && !path.starts_with('.')
    }

    pub fn life(&self, pid: u32) -> Life {
        self.lives.get(&pid).copied().unwrap_or(Life::Unknown)
    }

    pub fn begin(&mut self, me: usize, task: Task, node: &str, token: Option<String>) {
        let job = Job {
            task,
            node: node.to_owned(),
            tokens: token.into_iter().collect(),
            written: Vec::new(),
            read: self.known.get(&me).cloned().map(Basis::recalled),
            clock_read: false,
            written_down: false,
            was_lost: false,
            staged: HashMap::new(),
        };
        self.jobs.insert(me, job);
    }

    pub fn end(&mut self, me: usize) -> Option<Job> {
        self.answers += 1;
        self.jobs.remove(&me)
    }

    pub fn read(&mut self, me: usize, path: &str, bytes: Option<&[u8]>, now: Reading) {
        if let Some(job) = self.jobs.get_mut(&me).filter(|job| job.node == path) {
            let bytes = bytes.unwrap_or_default().to_vec();
            let live = Record::of(&bytes).is_some_and(|record| record.is_live(now, &self.lives));
            // Reading the same again before anything is written makes no new decision.
            let same = job.read.as_ref().is_some_and(|read| read.bytes == bytes);
            job.clock_read &= same && !job.written_down;
            job.read = Some(Basis { bytes, live, timed: false, recalled: false });
        }
    }

    pub fn clock_read(&mut self, me: usize, now: Reading) {
        if let Some(job) = self.jobs.get_mut(&me) {
            job.clock_read = true;
            job.written_down = false;
            let read = job.read.as_ref().and_then(|read| Record::of(&read.bytes));
            let live = read.is_some_and(|read| read.is_live(now, &self.lives));
            match &mut job.read {
                Some(basis) if basis.recalled => basis.live = live,
                _ => job.was_lost |= !live,
            }
        }
    }

    /// A successor is written down, on the basis of what was read last.
    pub fn stage(&mut self, me: usize, path: &str) {
        if let Some(job) = self.jobs.get_mut(&me)
            && let Some(read) = &job.read
        {
            job.written_down = true;
            job.staged.insert(path.to_owned(), Basis { timed: job.clock_read, ..read.clone() });
        }
    }

    pub fn staged_as(&mut self, me: usize, from: &str, to: &str) {
        if let Some(job) = self.jobs.get_mut(&me)
            && let Some(basis) = job.staged.get(from).cloned()
        {
            job.staged.insert(to.to_owned(), basis);
        }
    }

    /// Process `me` published `new` over `old`.
    pub fn published(
        &mut self,
        me: usize,
        from: &str,
        path: &str,
        old: Option<&[u8]>,
        new: &[u8],
        now: Reading,
    ) -> Result<(), String> {
        let Some(job) = self.jobs.get_mut(&me) else {
            return Err(format!("process {me} published with nothing to do"));
        };
        let new_record =
            Record::of(new).ok_or_else(|| format!("process {me} published what is no record"))?;
        let old_record = Record::of(old.unwrap_or_default()).ok_or("an unreadable record was replaced")?;
        let story = self.nodes.entry(path.to_owned()).or_default();
        must(job.node == path, || format!("process {me} changed another node, {path}"))?;
        let basis = job.staged.get(from).ok_or("it published what it never decided")?;
        let unowned = old.is_none_or(<[u8]>::is_empty);
        must(basis.bytes == old.unwrap_or_default() || (self.removals && unowned), || {
            let version = old_record.version;
            format!("process {me} published over version {version}, which it did not decide by: two winners")
        })?;
        must(basis.timed, || format!("process {me} published a decision by a time from before its record"))?;
        if unowned && self.removals {
            story.start_anew();
        }
        let receipt = new_record.receipt.as_ref();
        let before = receipt.and_then(|_| story.writes.iter().find(|w| w.record.receipt.as_ref() == receipt));
        must(before.is_none(), || format!("process {me} did again what a receipt stands for"))?;
        let orphan = basis.bytes != old.unwrap_or_default();
        let owned = old_record.token().is_some_and(|token| job.tokens.iter().any(|mine| mine == token));
        let live = old_record.is_live(now, &self.lives);
        let late = owned && !basis.live;
        let step = Move { old: &old_record, new: &new_record, owned, live, late, now, task: job.task };
        let judged = if orphan { Ok(()) } else { step.judge(&story.issued) };
        judged.map_err(|what| {
            let (from, to) = (&old_record.state, &new_record.state);
            format!("process {me} ({:?}), version {} {from} -> {to}: {what}", job.task, new_record.version)
        })?;
        if step.is_takeover() {
            story.issued.insert(new_record.generation);
            job.tokens.extend(new_record.token().map(str::to_owned));
        }
        match job.task {
            Task::Acquire { .. } if new_record.state == "ready" => job.written.clear(),
            Task::Acquire { .. } if !step.is_takeover() => {}
            _ => job.written.push(new_record.write.clone()),
        }
        for hold in &mut story.holds {
            if hold.token() == new_record.token() {
                *hold = new_record.clone();
            }
        }
        let gone = old_record.token().filter(|token| new_record.token() != Some(*token));
        story.holds.retain(|hold| hold.token() != gone);
        job.clock_read = false;
        job.read = Some(Basis::recalled(new.to_vec()));
        self.known.insert(me, new.to_vec());
        let late = !new_record.is_live(now, &self.lives);
        story.writes.push(Write { record: new_record, bytes: new.to_vec(), late });
        Ok(())
    }

    pub fn fingerprint(&self) -> u64 {
        let story = |story: &Story| (story.writes.len(), story.kept, story.answered.clone());
        let stories: Vec<_> = self.nodes.values().map(story).collect();
        hash_of(&(stories, self.answers))
    }

    /// After a power cut: what is there is what was published, and nothing of what was promised is missing.
    pub fn power_cut(&mut self, disk: &Disk) -> Result<(), String> {
        self.jobs.clear();
        self.known.clear();
        for (path, story) in &mut self.nodes {
            let bytes = disk.read(path).unwrap_or_default();
            let at = story.writes.iter().rposition(|write| write.bytes == bytes).map(|at| at + 1);
            let left = at.or(bytes.is_empty().then_some(0));
            let left = left.ok_or_else(|| format!("{path} is torn after the power cut"))?;
            must(left >= story.kept, || {
                let lost = &story.writes[left].record;
                format!("{path}: version {} was answered with yes, and is lost", lost.version)
            })?;
            story.writes.truncate(left);
            let claims = story.writes.iter().filter(|write| write.record.claim.is_some());
            story.issued = claims.map(|write| write.record.generation).collect();
            let last = |token| story.writes.iter().rev().find(|write| write.record.token() == token);
            story.holds =
                story.holds.iter().filter_map(|h| last(h.token())).map(|w| w.record.clone()).collect();
        }
        Ok(())
    }

    /// Somebody outside removed the record: its story starts anew.
    pub fn removed(&mut self, path: &str) {
        self.nodes.entry(path.to_owned()).or_default().start_anew();
    }
}

impl Story {
    fn start_anew(&mut self) {
        *self = Story::default();
    }

    pub fn write(&self, id: &str) -> Option<(usize, &Write)> {
        self.writes.iter().enumerate().find(|(_, write)| write.record.write == id)
    }

    /// Somebody was told that this write stands.
    pub fn promise(&mut self, index: usize) {
        self.kept = self.kept.max(index + 1);
    }

    /// Somebody was told that the node is its own, by the claim in this record.
    pub fn hold(&mut self, record: &Record, now: Reading, lives: &BTreeMap<u32, Life>) -> Result<(), String> {
        self.holds.retain(|hold| hold.token() != record.token());
        if !record.is_live(now, lives) {
            return Ok(());
        }
        let other = self.holds.iter().find(|hold| hold.is_live(now, lives));
        must(other.is_none(), || {
            let other = other.map_or(0, |other| other.generation);
            format!("generations {other} and {} hold it at once", record.generation)
        })?;
        self.holds.push(record.clone());
        Ok(())
    }

    /// Who had this token gives the node up, or tries to.
    pub fn let_go(&mut self, token: &str) {
        self.holds.retain(|hold| hold.token() != Some(token));
    }
}
