//! What may happen at a call, and when.

use std::fmt;

use super::choice::Choices;
use super::state::{State, Status, Verdict};

/// How much of each kind of trouble a run may have.
#[derive(Clone, Debug, Default, Hash)]
pub struct Left {
    /// Turns taken away from a process that could go on. A search only: with dice they are not counted.
    pub preemptions: u32,
    /// Times that all clocks leap ahead.
    pub jumps: u32,
    pub faults: u32,
    pub cuts: u32,
    pub crashes: u32,
    pub freezes: u32,
}

/// In a search the clocks stand still but for steps of this length at each write and each pause: longer than any
/// courtesy, so that the courtesies, on which nothing may depend, are out of the way of what is searched.
pub const STEP_MS: u64 = 60;

/// How a run goes. The numbers are chances in 10,000 at each call, for dice.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub budget: Left,
    pub jump_ms: u64,
    /// In which order listings are read: names are sorted by their hash with this.
    pub salt: u64,
    pub switch: usize,
    pub crash: usize,
    pub freeze: usize,
    pub nap: usize,
    pub fault: usize,
    pub jump: usize,
    pub wall_step: usize,
    pub cut: usize,
    pub mutant: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Create,
    Write,
    Fill,
    SyncFile,
    Rename,
    Link,
    Unlink,
    List,
    MakeFolder,
    RemoveFolder,
    SyncFolder,
    Walk,
    Clock,
    Tick,
    Pause,
}

/// A call that a process is about to make.
pub struct Call<'a> {
    pub kind: Kind,
    pub path: &'a str,
    pub to: &'a str,
}

impl<'a> Call<'a> {
    pub fn on(kind: Kind, path: &'a str) -> Call<'a> {
        Call { kind, path, to: "" }
    }

    /// Can it matter to others, or others to it? What nobody else looks at or changes needs no turns.
    fn is_shared(&self) -> bool {
        match self.kind {
            Kind::Read => self.path != ".store/format",
            Kind::Unlink => !self.path.contains("/tmp."),
            Kind::Write | Kind::Fill | Kind::SyncFile | Kind::SyncFolder | Kind::Tick | Kind::Clock => false,
            _ => true,
        }
    }

    /// How it can fail: before its effect, or with it.
    fn faults(&self) -> &'static [Fault] {
        use Fault::{EioAfter, EioBefore, NoSpace};
        match self.kind {
            Kind::Read | Kind::List | Kind::SyncFile | Kind::SyncFolder | Kind::Walk => &[EioBefore],
            Kind::Rename | Kind::Link | Kind::Create => &[EioBefore, EioAfter, NoSpace],
            Kind::Unlink | Kind::RemoveFolder => &[EioBefore, EioAfter],
            Kind::Write | Kind::Fill | Kind::MakeFolder => &[EioBefore, NoSpace],
            Kind::Clock | Kind::Tick | Kind::Pause => &[],
        }
    }
}

impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.path)?;
        if self.to.is_empty() { Ok(()) } else { write!(f, " -> {}", self.to) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    EioBefore,
    EioAfter,
    NoSpace,
}

pub enum Event {
    Go,
    Switch(usize),
    Stop(Status),
    /// Something happened that leaves the process where it was.
    Again,
}

/// What a search may choose at one point.
#[derive(Clone, Copy)]
enum Chance {
    Go,
    Switch(usize),
    Jump,
    Crash,
    Cut,
}

impl State {
    /// What happens before this call of process `me`.
    pub fn event(&mut self, me: usize, call: &Call<'_>) -> Event {
        if self.choices.is_search() { self.searched(me, call) } else { self.rolled(me) }
    }

    fn searched(&mut self, me: usize, call: &Call<'_>) -> Event {
        // What is on disk matters to all once there can be a power cut, and the time once it can leap.
        let timely = call.kind == Kind::Clock && self.rules.budget.jumps > 0;
        let shared = call.is_shared() || timely || self.rules.budget.cuts > 0;
        if !shared {
            return Event::Go;
        }
        if !self.is_news(me) {
            self.verdict = Verdict::Pruned;
            self.end_all();
            return Event::Go;
        }
        let mut options = vec![Chance::Go];
        // Who pauses gives up its turn of its own accord.
        let yields = call.kind == Kind::Pause;
        if shared && (self.left.preemptions > 0 || yields) {
            options.extend(self.ready(Some(me)).into_iter().map(Chance::Switch));
        }
        if self.left.jumps > 0 {
            options.push(Chance::Jump);
        }
        if self.left.crashes > 0 {
            options.push(Chance::Crash);
        }
        if self.left.cuts > 0 {
            options.push(Chance::Cut);
        }
        let chosen = options[self.choices.pick(options.len())];
        match chosen {
            Chance::Go => Event::Go,
            Chance::Switch(next) => {
                if !yields {
                    self.left.preemptions -= 1;
                }
                Event::Switch(next)
            }
            Chance::Jump => {
                self.left.jumps -= 1;
                self.leap(self.rules.jump_ms);
                Event::Again
            }
            Chance::Crash => {
                self.kill(me);
                Event::Go
            }
            Chance::Cut => {
                self.left.cuts -= 1;
                self.power_cut();
                Event::Go
            }
        }
    }

    /// Is this a state in which no run has been?
    fn is_news(&mut self, me: usize) -> bool {
        match &self.choices {
            Choices::Search(search) if !search.is_replaying() => {}
            _ => return true,
        }
        let state = self.fingerprint(me);
        match &mut self.choices {
            Choices::Search(search) => search.seen.insert(state),
            Choices::Dice(_) => true,
        }
    }

    fn kill(&mut self, me: usize) {
        self.left.crashes -= 1;
        self.note(|| format!("{me}: KILLED"));
        self.processes[me].status = Status::Dead;
    }

    fn leap(&mut self, ms: u64) {
        self.time.pass_ms(ms);
        self.note(|| format!("-- {ms} ms pass"));
    }

    fn rolled(&mut self, me: usize) -> Event {
        let rules = &self.rules;
        let (crash, freeze, nap, jump) = (rules.crash, rules.freeze, rules.nap, rules.jump);
        let (wall_step, cut, switch, long) = (rules.wall_step, rules.cut, rules.switch, rules.jump_ms);
        self.time.ns += self.choices.pick(200_000) as u64;
        if self.left.crashes > 0 && self.choices.happens(crash) {
            self.kill(me);
            return Event::Go;
        }
        if self.left.freezes > 0 && self.choices.happens(freeze) {
            self.left.freezes -= 1;
            return Event::Stop(Status::Frozen);
        }
        if self.choices.happens(nap) {
            let length = self.choices.pick(long as usize * 1_000_000) as u64;
            return Event::Stop(Status::Asleep(self.time.ns + length));
        }
        if self.left.jumps > 0 && self.choices.happens(jump) {
            self.left.jumps -= 1;
            let ms = self.choices.pick(long as usize) as u64;
            self.leap(ms);
        }
        if self.choices.happens(wall_step) {
            self.time.wall_off_ms += self.choices.pick(4 * long as usize) as i64 - 2 * long as i64;
            self.note(|| "-- the wall clock is set".to_owned());
        }
        if self.left.cuts > 0 && self.choices.happens(cut) {
            self.left.cuts -= 1;
            self.power_cut();
            return Event::Go;
        }
        if self.choices.happens(switch) {
            let others = self.ready(Some(me));
            if !others.is_empty() {
                return Event::Switch(others[self.choices.pick(others.len())]);
            }
        }
        Event::Go
    }

    /// How this call of process `me` fails, if it does.
    pub fn fault(&mut self, me: usize, call: &Call<'_>) -> Fault {
        let kinds = call.faults();
        if self.left.faults == 0 || kinds.is_empty() {
            return Fault::None;
        }
        let rate = self.rules.fault;
        let chosen = if self.choices.is_search() {
            self.choices.pick(kinds.len() + 1).checked_sub(1)
        } else {
            self.choices.happens(rate).then(|| self.choices.pick(kinds.len()))
        };
        let Some(chosen) = chosen else { return Fault::None };
        self.left.faults -= 1;
        self.note(|| format!("{me}: {:?} at {call}", kinds[chosen]));
        kinds[chosen]
    }
}
