//! All that a run is made of, as one who holds the turn sees it.

use super::choice::Choices;
use super::clock::Time;
use super::disk::{Disk, hash_of};
use super::oracle::Oracle;
use super::rules::{Left, Rules};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Ready,
    /// Until this moment of true time.
    Asleep(u64),
    /// Frozen until thawed.
    Frozen,
    Dead,
    Ended,
}

pub struct Process {
    pub status: Status,
    /// Has its thread let go of it?
    pub finished: bool,
    /// Stands for all that it was ever told, hence for its whole state.
    pub history: u64,
    /// Calls since its operation began.
    pub steps: u64,
    /// Its calls up to the end of this one are one step.
    pub in_one: bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    /// It came to a state that another run has been in.
    Pruned,
    Violated(String),
}

pub struct State {
    pub turn: Option<usize>,
    pub processes: Vec<Process>,
    pub disk: Disk,
    pub time: Time,
    pub choices: Choices,
    pub oracle: Oracle,
    pub rules: Rules,
    pub left: Left,
    pub verdict: Verdict,
    pub trace: Option<Vec<String>>,
}

impl State {
    pub fn is_alive(&self, me: usize) -> bool {
        self.processes[me].status != Status::Dead
    }

    fn is_ready(&self, process: &Process) -> bool {
        match process.status {
            Status::Ready => true,
            Status::Asleep(until) => until <= self.time.ns,
            _ => false,
        }
    }

    /// Who could go on.
    pub fn ready(&self, except: Option<usize>) -> Vec<usize> {
        let ready = (0..self.processes.len()).filter(|i| self.is_ready(&self.processes[*i]));
        ready.filter(|i| Some(*i) != except).collect()
    }

    pub fn next(&mut self) -> Option<usize> {
        let mut ready = self.ready(None);
        if ready.is_empty() {
            let wakes = self.processes.iter().filter_map(|p| match p.status {
                Status::Asleep(until) => Some(until),
                _ => None,
            });
            self.time.ns = wakes.min()?;
            ready = self.ready(None);
        }
        let chosen = self.choices.pick(ready.len());
        ready.get(chosen).copied()
    }

    /// Takes down that process `me` was told something.
    pub fn observe(&mut self, me: usize, told: u64) {
        let process = &mut self.processes[me];
        process.history = hash_of(&(process.history, told));
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            let line = format!("{:>12.3} ms  {}", self.time.ns as f64 / 1e6, line());
            trace.push(line);
        }
    }

    /// The first violation ends the run.
    pub fn violate(&mut self, what: String) {
        self.note(|| format!("VIOLATION: {what}"));
        if self.verdict == Verdict::Holds {
            self.verdict = Verdict::Violated(what);
        }
        self.end_all();
    }

    /// No process does anything any more.
    pub fn end_all(&mut self) {
        for process in &mut self.processes {
            process.status = Status::Dead;
        }
        self.turn = None;
    }

    /// All processes are gone, and of what was not synced who knows how much.
    pub fn power_cut(&mut self) {
        self.note(|| "POWER CUT".to_owned());
        self.end_all();
        let choices = &mut self.choices;
        self.disk.power_cut(|options| choices.pick(options));
        self.time.pass_ms(1);
        self.time.reboot();
        if let Err(what) = self.oracle.power_cut(&self.disk) {
            self.violate(what);
        }
    }

    /// Tells two states apart that could go on differently.
    pub fn fingerprint(&self, me: usize) -> u64 {
        let processes: Vec<_> = self.processes.iter().map(|p| (p.status, p.history)).collect();
        let disk = self.disk.fingerprint(self.rules.budget.cuts > 0);
        hash_of(&(me, processes, disk, self.time.ns, self.time.boot, &self.left, self.oracle.fingerprint()))
    }
}
