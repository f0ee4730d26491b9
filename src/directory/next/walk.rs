//! One walk along the hints of a queue.

use std::collections::{HashSet, VecDeque};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::run::{FIRST_PAGE, PAGE, Place, Run, Turn};
use super::{Next, Nothing};
use crate::directory::Directory;
use crate::directory::known::Read;
use crate::domain::hint::{self, Mark};
use crate::domain::{Answer, Lack, Need, Node, Refusal, Standing, WriteId, next_end_ms, standing};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::{Glimpse, Key, Prefix};

/// One walk, and what was met on it.
pub(super) struct Walk<'a> {
    pub(super) directory: &'a Directory,
    pub(super) request: &'a Next,
    /// Whose monotonic time is counted here.
    pub(super) clock: String,
    /// How many hints it lists at once.
    pub(super) page: usize,
    /// Does it only look?
    pub(super) looks: bool,
    /// What the lane's lists were as the walk began, as far as the store tells at once.
    pub(super) glimpse: Option<Glimpse>,
    /// Did others change anything that was met?
    pub(super) lost: bool,
    /// What was passed by although it may come up: its hint is ahead of its record.
    pub(super) passed_by: HashSet<(NodeId, Option<WriteId>)>,
    /// Those that others were just taking, who mostly get them: left to the end of those of their priority.
    pub(super) in_hand: Vec<Turn>,
    /// Lists in which nothing was due, and by when.
    pub(super) not_due: Vec<(String, i64)>,
    /// What was found to be in the way of others: all that stand there are refused.
    pub(super) closed: HashSet<String>,
    pub(super) nothing: Nothing,
}

/// What becomes of a task met.
enum Verdict {
    Take,
    PassBy,
    /// Its turn comes in so many milliseconds.
    Later(Option<i64>),
    /// It waits for another of which nothing is known, for this reason.
    Unknown(String),
    /// The hint leads nowhere.
    Drop,
}

impl<'a> Walk<'a> {
    pub(super) fn new(directory: &'a Directory, request: &'a Next) -> Walk<'a> {
        let clock = hint::clock_of(directory.host.place());
        let is_first = !directory.queues.walked.swap(true, Ordering::Relaxed);
        Walk {
            directory,
            request,
            clock,
            page: if is_first { FIRST_PAGE } else { PAGE },
            looks: false,
            glimpse: None,
            lost: false,
            passed_by: HashSet::new(),
            in_hand: Vec::new(),
            not_due: Vec::new(),
            closed: HashSet::new(),
            nothing: Nothing::default(),
        }
    }

    /// A walk that writes nothing.
    pub(super) fn looking(directory: &'a Directory, request: &'a Next) -> Walk<'a> {
        Walk { looks: true, ..Walk::new(directory, request) }
    }

    /// Takes the first task that `take` gets.
    pub(super) fn take_first<T>(
        &mut self,
        take: &mut dyn FnMut(Read) -> Result<Answer<T>>,
    ) -> Result<Option<T>> {
        let since_ns = self.directory.host.mono_ns();
        let lane = self.lane();
        if self.glimpse.is_none() {
            self.look()?;
        }
        let looks_for_orphans = self.is_time_for_orphans();
        self.look_ahead(looks_for_orphans)?;
        let mut orphans = if looks_for_orphans { self.orphans(&lane)? } else { Vec::new() };
        let mut priorities = self.priorities()?;
        priorities.extend(orphans.iter().map(|(priority, _)| priority.clone()));
        priorities.sort_unstable();
        priorities.dedup();
        for priority in priorities {
            let own = orphans.extract_if(.., |(of, _)| *of == priority);
            let mut own: VecDeque<Turn> = own.map(|(_, turn)| turn).collect();
            own.make_contiguous().sort_by(|one, other| one.place.cmp(&other.place));
            let mut runs = self.runs(&format!("{lane}/{priority}"))?;
            runs.push(Run::given(own));
            while let Some(turn) = self.first(&mut runs)? {
                if let Some(taken) = self.meet(turn, true, take)? {
                    if !self.looks {
                        self.leave_listed(&mut runs, since_ns)?;
                    }
                    return Ok(Some(taken));
                }
            }
            if let Some(taken) = self.take_in_hand(take)? {
                return Ok(Some(taken));
            }
        }
        self.look_forward()?;
        Ok(None)
    }

    /// Takes the first of those that were left to others who did not get them.
    fn take_in_hand<T>(&mut self, take: &mut dyn FnMut(Read) -> Result<Answer<T>>) -> Result<Option<T>> {
        for turn in std::mem::take(&mut self.in_hand) {
            if let Some(taken) = self.meet(turn, false, take)? {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    pub(super) fn parts(&self, folder: &str) -> Result<Vec<String>> {
        let known = self.glimpse.as_ref().and_then(|glimpse| glimpse.parts(folder));
        known.map_or_else(|| self.directory.store.parts(folder), Ok)
    }

    pub(super) fn list(&self, folder: &str, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        let known = self.glimpse.as_ref().and_then(|glimpse| glimpse.list(folder, after, limit));
        known.map_or_else(|| self.directory.store.list(&Prefix::Internal(folder), after, limit), Ok)
    }

    /// The next names of a list, at most so many, and whether there are no more.
    pub(super) fn list_page(
        &self,
        folder: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Key>, bool)> {
        if let Some(page) = self.glimpse.as_ref().and_then(|glimpse| glimpse.page(folder, after, limit)) {
            return Ok(page);
        }
        let keys = self.directory.store.list(&Prefix::Internal(folder), after, limit)?;
        let ended = keys.len() < limit;
        Ok((keys, ended))
    }

    /// The ordered lists of one priority.
    fn runs(&mut self, priority: &str) -> Result<Vec<Run>> {
        let projects: Vec<String> = match self.request.projects.as_slice() {
            [] => self.parts(priority)?,
            projects => projects.iter().map(|project| hint::optional(Some(project))).collect(),
        };
        let mut runs = Vec::new();
        for project in projects {
            runs.push(Run::listed(format!("{priority}/{project}/{}", hint::UP), None));
            let parked = format!("{priority}/{project}/{}", hint::PARKED);
            for obstacle in self.parts(&parked)? {
                let folder = format!("{parked}/{obstacle}");
                if !self.is_closed(&folder, &obstacle)? {
                    runs.push(Run::aside(folder, obstacle));
                }
            }
            for clock in self.parts(&format!("{priority}/{project}/{}", hint::TIMED))? {
                // Of another boot's time nothing is known here: those are all looked at.
                let until = (clock == self.clock).then(|| self.directory.host.now().mono_ms);
                let folder = format!("{priority}/{project}/{}/{clock}", hint::TIMED);
                match until {
                    Some(until) if !self.may_be_due(&folder, until)? => self.not_due.push((folder, until)),
                    Some(_) => runs.push(Run::listed(folder, until)),
                    None => {
                        self.read_ahead(&folder)?;
                        runs.push(Run::listed(folder, until));
                    }
                }
            }
        }
        Ok(runs)
    }

    /// Of all lists' first ones the one that has waited longest.
    pub(super) fn first(&mut self, runs: &mut [Run]) -> Result<Option<Turn>> {
        let mut first: Option<(&Place, usize)> = None;
        for (at, run) in runs.iter_mut().enumerate() {
            if let Some(place) = run.peek(self)?
                && first.is_none_or(|(earliest, _)| place < earliest)
            {
                first = Some((place, at));
            }
        }
        let at = first.map(|(_, at)| at);
        Ok(at.and_then(|at| runs.get_mut(at)).and_then(|run| run.page.pop_front()))
    }

    /// Looks at the task that a hint leads to, and takes it if it can be taken; one that another is just taking only
    /// if this walk no longer `yields` to that one.
    pub(super) fn meet<T>(
        &mut self,
        turn: Turn,
        yields: bool,
        take: &mut dyn FnMut(Read) -> Result<Answer<T>>,
    ) -> Result<Option<T>> {
        if self.is_known_closed(turn.obstacle.as_deref()) {
            return Ok(None);
        }
        let (node, bytes) = match self.read(&turn.mark.id) {
            Ok(Some(read)) => read,
            Ok(None) => {
                self.passed_by.insert((turn.mark.id, None));
                return Ok(None);
            }
            // Others go on.
            Err(error) => {
                self.nothing.unreadable.insert(turn.mark.id, error.to_string());
                return Ok(None);
            }
        };
        match self.judge(&node, &turn.mark) {
            Verdict::Take if yields && self.is_in_hand(&node.id)? => self.in_hand.push(turn),
            Verdict::Take => return self.try_take(&turn, (node, bytes), take),
            Verdict::PassBy => {
                self.passed_by.insert((turn.mark.id, Some(node.write)));
            }
            Verdict::Later(None) => {}
            Verdict::Unknown(why) => drop(self.nothing.unreadable.insert(turn.mark.id, why)),
            Verdict::Later(Some(ms)) => self.nothing.due_in(ms),
            Verdict::Drop if self.looks => {}
            Verdict::Drop => {
                // It was there when it was listed: where it went, another hint may have been passed already.
                self.lost = true;
                if hint::is_met(&node) {
                    self.directory.tell_dependents(&node)?;
                }
                self.directory.drop_hint(&turn.name);
            }
        }
        Ok(None)
    }

    fn is_in_hand(&self, id: &NodeId) -> Result<bool> {
        Ok(!self.looks && self.directory.store.is_in_hand(&Key::Node(id.clone()))?)
    }

    fn judge(&self, node: &Node, mark: &Mark) -> Verdict {
        let named = hint::is_named(node, mark);
        let ahead = node.version < mark.version;
        self.directory.with_facts(node, |facts| match standing(node, facts) {
            // What is over is written down by whoever tries to take it.
            Standing::Free
            | Standing::Lapsed { .. }
            | Standing::Spent { .. }
            | Standing::Overdue { .. }
            | Standing::CalledOff { .. }
            | Standing::Adrift { .. } => Verdict::Take,
            #[cfg(feature = "testing")]
            _ if crate::testing::fault("a hint dropped since its task can't be taken") => Verdict::Drop,
            _ if ahead => Verdict::PassBy,
            Standing::Held { remaining_ms, .. } if named => Verdict::Later(remaining_ms),
            Standing::NotYet { .. } | Standing::Blocked(_) if named => {
                Verdict::Later(next_end_ms(node, facts))
            }
            // It may be done, and then nobody puts another.
            Standing::Waiting(Need { lacks: Lack::Unreadable { why, .. }, .. }) => {
                Verdict::Unknown(why.clone())
            }
            // Whoever makes the last of those done that it waits for puts another.
            _ => Verdict::Drop,
        })
    }

    fn try_take<T>(
        &mut self,
        turn: &Turn,
        read: Read,
        take: &mut dyn FnMut(Read) -> Result<Answer<T>>,
    ) -> Result<Option<T>> {
        let id = &turn.mark.id;
        let taking = || self.directory.queues.taking.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.looks && !taking().insert(id.clone()) {
            // Another thread of this process is at it.
            self.lost = true;
            return Ok(None);
        }
        let answer = take(read);
        taking().remove(id);
        match answer? {
            Ok(taken) => {
                // The record names no hint that stands there, so it would be left for others to meet.
                if turn.obstacle.is_some() && !self.looks {
                    self.directory.drop_hint(&turn.name);
                }
                Ok(Some(taken))
            }
            Err(refusal) => {
                if refusal.reason.is_of_resources() && !self.looks {
                    self.park(turn)?;
                }
                self.refused(refusal);
                Ok(None)
            }
        }
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        match &refusal.reason {
            // Its paths, or what else it needs, others have; it itself is as it was.
            reason if reason.is_of_resources() => {
                if let Some(ms) = refusal.passes_in_ms().filter(|_| refusal.passes()) {
                    self.nothing.due_in(ms);
                }
                self.nothing.refused.get_or_insert(Box::new(refusal));
            }
            _ => self.lost = true,
        }
    }
}
