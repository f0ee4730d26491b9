//! Submitting tasks, and reviewing what came of them.

use serde_json::{Map, Value, json};

use super::over::{ended_by_time, refuse_ended};
use super::record::{
    Content, Delay, Ending, Moment, Name, Node, Outcome, Resources, Review, State, Task, WriteId,
};
use super::refusal::{Reason, Refusal};
use super::settle::Written;
use super::standing::{Facts, Standing, standing};
use super::{Scope, Step};
use crate::error::{Error, Result};
use crate::id::NodeId;
use crate::time::When;

/// A request to submit a task.
#[derive(Clone, Debug)]
pub struct Submission {
    by: String,
    title: Option<String>,
    input: Content,
    queue: Name,
    project: Option<Name>,
    priority: u8,
    after: Vec<NodeId>,
    review: bool,
    resources: Resources,
    max_attempts: u64,
    deadline: Option<When>,
    not_before: Option<When>,
    subscribers: Vec<Name>,
    scope: Option<Scope>,
}

impl Submission {
    /// Without anything said: 5 attempts.
    pub const DEFAULT_ATTEMPTS: u64 = 5;
    /// The most attempts that a task may get.
    pub const MAX_ATTEMPTS: u64 = 1_000_000;

    /// A task submitted by `owner`, without input and free to be taken at once.
    pub fn by(owner: impl Into<String>) -> Submission {
        Submission {
            by: owner.into(),
            title: None,
            input: Content::Value(Value::Null),
            queue: Task::default_queue(),
            project: None,
            priority: Task::DEFAULT_PRIORITY,
            after: Vec::new(),
            review: false,
            resources: Resources::default(),
            max_attempts: Submission::DEFAULT_ATTEMPTS,
            deadline: None,
            not_before: None,
            subscribers: Vec::new(),
            scope: None,
        }
    }

    /// What a person reads: at most [`Task::MAX_TITLE`] bytes ([`Code::Usage`](crate::Code::Usage)).
    pub fn title(mut self, title: impl Into<String>) -> Result<Submission> {
        let title = title.into();
        if title.len() > Task::MAX_TITLE {
            return Err(Error::usage(format!("a title has at most {} bytes", Task::MAX_TITLE)));
        }
        self.title = Some(title);
        Ok(self)
    }

    /// What a worker gets. It makes the task what it is: another input under the same id is refused.
    pub fn input(mut self, input: Value) -> Submission {
        self.input = Content::Value(input);
        self
    }

    /// The same with a value that is kept beside the record.
    pub(crate) fn content(mut self, input: Content) -> Submission {
        self.input = input;
        self
    }

    /// Into this queue, rather than `default`.
    pub fn queue(mut self, queue: Name) -> Submission {
        self.queue = queue;
        self
    }

    /// What it belongs to.
    pub fn project(mut self, project: Name) -> Submission {
        self.project = Some(project);
        self
    }

    /// How soon it is its turn: 0, which goes first, to 9.
    pub fn priority(mut self, priority: u8) -> Result<Submission> {
        if priority > Task::LAST_PRIORITY {
            return Err(Error::usage(format!("a priority is 0, which goes first, to 9, not {priority}")));
        }
        self.priority = priority;
        Ok(self)
    }

    /// Only once this task is done and, where it asks for it, accepted. It must have been submitted before.
    pub fn after(mut self, task: NodeId) -> Submission {
        if !self.after.contains(&task) {
            self.after.push(task);
        }
        self
    }

    /// Its outcome must be accepted before others may build on it.
    pub fn review(mut self) -> Submission {
        self.review = true;
        self
    }

    /// Each claim on it takes all of this along too.
    pub fn with(mut self, resources: &Resources) -> Submission {
        self.resources = self.resources.union(resources);
        self
    }

    /// How many attempts it gets: 1 to 1,000,000.
    pub fn max_attempts(mut self, attempts: u64) -> Result<Submission> {
        let most = Submission::MAX_ATTEMPTS;
        if !(1..=most).contains(&attempts) {
            return Err(Error::usage(format!("a task gets 1 to {most} attempts, not {attempts}")));
        }
        self.max_attempts = attempts;
        Ok(self)
    }

    /// It expires if it has not ended then, also while somebody holds it.
    pub fn deadline(mut self, deadline: When) -> Submission {
        self.deadline = Some(deadline);
        self
    }

    /// Nobody can take it before then.
    pub fn not_before(mut self, not_before: When) -> Submission {
        self.not_before = Some(not_before);
        self
    }

    /// Somebody who is interested in it; at most [`Task::MAX_SUBSCRIBERS`]. Also joins a task that is there already
    /// and has not ended.
    pub fn subscriber(mut self, subscriber: Name) -> Result<Submission> {
        if !self.subscribers.contains(&subscriber) {
            self.subscribers.push(subscriber);
        }
        if self.subscribers.len() > Task::MAX_SUBSCRIBERS {
            return Err(Error::usage(format!("a task has at most {} subscribers", Task::MAX_SUBSCRIBERS)));
        }
        Ok(self)
    }

    /// In this scope, if it is a plain message: a task's id says which it is in.
    pub fn scope(mut self, scope: Scope) -> Submission {
        self.scope = Some(scope);
        self
    }

    /// The id that is made for a plain message, in its scope.
    pub(crate) fn made(&self, id: NodeId) -> Result<NodeId> {
        self.scope.as_ref().map_or(Ok(id.clone()), |scope| scope.id(id.as_str()))
    }

    /// The tasks it waits for.
    pub(crate) fn dependencies(&self) -> &[NodeId] {
        &self.after
    }

    pub(crate) fn queue_name(&self) -> &Name {
        &self.queue
    }

    pub(crate) fn input_content(&self) -> &Content {
        &self.input
    }

    pub(crate) fn submitter(&self) -> &str {
        &self.by
    }

    /// What makes a request the same as another, its submitter apart.
    pub(crate) fn arguments(&self) -> Value {
        let after: Vec<&str> = self.after.iter().map(NodeId::as_str).collect();
        let (queue, project) = (self.queue.as_str(), self.project.as_ref().map(Name::as_str));
        let subscribers: Vec<&str> = self.subscribers.iter().map(Name::as_str).collect();
        let (deadline, not_before) =
            (self.deadline.map(When::arguments), self.not_before.map(When::arguments));
        json!([
            self.title,
            self.input.argument(),
            queue,
            project,
            self.priority,
            after,
            self.review,
            self.max_attempts,
            deadline,
            not_before,
            subscribers,
            self.resources.fields()
        ])
    }

    fn task(&self, facts: &Facts<'_>) -> Task {
        let (input, input_blob) = self.input.parts();
        Task {
            title: self.title.clone(),
            input,
            input_blob,
            input_hash: self.input.hash(),
            queue: self.queue.clone(),
            project: self.project.clone(),
            priority: self.priority,
            after: self.after.clone(),
            review: self.review,
            resources: self.resources.clone(),
            max_attempts: self.max_attempts,
            deadline: self.deadline.map(|deadline| Moment::at(deadline, facts)),
            subscribers: self.subscribers.clone(),
            by: self.by.clone(),
            submitted_ms: facts.now.wall_ms,
            extra: Map::new(),
        }
    }

    /// The options that differ from those of the task that is there already. A moment that was named as a time from
    /// now is another one each time.
    fn differing(&self, node: &Node, task: &Task) -> Vec<String> {
        let same_moment = |asked: Option<When>, there: Option<&Moment>| match (asked, there) {
            (Some(When::At(at)), Some(there)) => at == there.wall_ms,
            (asked, there) => asked.is_some() == there.is_some(),
        };
        // It is over once somebody has taken it.
        let delay = node.not_before.as_ref().filter(|_| node.generation == 0).map(|delay| &delay.until);
        let same = [
            ("title", self.title == task.title),
            ("queue", self.queue == task.queue),
            ("project", self.project == task.project),
            ("priority", self.priority == task.priority),
            ("after", self.after == task.after),
            ("review", self.review == task.review),
            ("path", self.resources.paths == task.resources.paths),
            ("pool", self.resources.pools == task.resources.pools),
            ("quota", self.resources.quotas == task.resources.quotas),
            ("max-attempts", self.max_attempts == task.max_attempts),
            ("deadline", same_moment(self.deadline, task.deadline.as_ref())),
            ("not-before", node.generation > 0 || same_moment(self.not_before, delay)),
        ];
        same.iter().filter(|(_, same)| !same).map(|(name, _)| (*name).to_owned()).collect()
    }
}

/// A task just submitted, or there already.
#[derive(Clone, Debug, PartialEq)]
pub struct Submitted {
    /// The record.
    pub node: Node,
    /// Was the task there already, in whatever state? Of a replay with a receipt: was it, when it was first submitted?
    pub existing: bool,
    /// Options that differ from those of the task that was there; they changed nothing.
    pub differing: Vec<String>,
    /// Did an earlier call of the same request submit it?
    pub replay: bool,
}

/// Makes `node` a task, or finds that it is this one already.
pub(crate) fn submit(
    node: &Node,
    facts: &Facts<'_>,
    request: &Submission,
    write: WriteId,
) -> Step<Submitted> {
    if let Some(task) = &node.task {
        if task.input_hash != request.input.hash() {
            return Step::refuse(node, Reason::OtherInput);
        }
        let differing = request.differing(node, task);
        return found(node, facts, request, differing, write);
    }
    match standing(node, facts) {
        Standing::Ended(..) => return Step::refuse(node, Reason::OtherInput),
        // Nothing new starts there.
        Standing::CalledOff { .. } => return refuse_ended(node, facts, write),
        _ => {}
    }
    let mut next = node.next(write, node.state.clone());
    next.task = Some(request.task(facts));
    if let Some(not_before) = request.not_before {
        let until = Moment::at(not_before, facts);
        let length_ms = until.wall_ms.saturating_sub(facts.now.wall_ms);
        next.not_before = Some(Delay { until, length_ms, reason: None });
    }
    let submitted = Submitted { node: next.clone(), existing: false, differing: Vec::new(), replay: false };
    Step::write(next, submitted)
}

/// The task that is there already; who is interested joins it. If time has ended it, that is written down.
fn found(
    node: &Node,
    facts: &Facts<'_>,
    request: &Submission,
    differing: Vec<String>,
    write: WriteId,
) -> Step<Submitted> {
    let mut next = ended_by_time(node, facts, write);
    let there = node.task.as_ref().map_or(&[][..], |task| &task.subscribers);
    let new: Vec<&Name> = request.subscribers.iter().filter(|name| !there.contains(name)).collect();
    if next.is_none() && node.outcome().is_none() && !new.is_empty() {
        let mut joined = node.next(write, node.state.clone());
        if let Some(task) = &mut joined.task {
            task.subscribers.extend(new.into_iter().cloned());
            if task.subscribers.len() > Task::MAX_SUBSCRIBERS {
                return Step::refuse(node, Reason::too_many_subscribers());
            }
        }
        next = Some(joined);
    }
    let node = next.clone().unwrap_or_else(|| node.clone());
    let submitted = Submitted { node, existing: true, differing, replay: false };
    Step { write: next, answer: Ok(submitted) }
}

/// A reviewer's word on an outcome.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Accepted, or rejected?
    pub accept: bool,
    /// The reviewer.
    pub by: String,
    /// What to note with it.
    pub note: Option<String>,
    /// Also if the reviewer did the work.
    pub allow_self: bool,
    /// Only of the outcome in this version of the record.
    pub seen: Option<u64>,
}

impl Verdict {
    pub(crate) fn arguments(&self) -> Value {
        json!([self.accept, self.note, self.allow_self, self.seen])
    }
}

/// Accepts a done task, or sends it back: ready again, or failed if its attempts are used up.
pub(crate) fn review(node: &Node, facts: &Facts<'_>, verdict: &Verdict, write: WriteId) -> Step<Written> {
    if let Some(seen) = verdict.seen.filter(|seen| *seen != node.version) {
        return Step::refuse(node, Reason::StaleVersion { seen });
    }
    if node.version == 0 {
        return Step::refuse(node, Reason::NotFound);
    }
    let outcome = match standing(node, facts) {
        Standing::Ended(Ending::Done, outcome) => outcome,
        standing => {
            let answer = Err(Refusal::new(node, Reason::NotDone(standing.name())));
            return Step { write: ended_by_time(node, facts, write), answer };
        }
    };
    if !node.asks_for_review() {
        return Step::refuse(node, Reason::NoReviewDue);
    }
    if let Some(review) = &node.review {
        let (by, accepted) = (review.by.clone(), review.accepted);
        return if review.by == verdict.by && review.accepted == verdict.accept && review.note == verdict.note
        {
            Step::answer(Written { node: node.clone(), replay: true })
        } else {
            Step::refuse(node, Reason::Reviewed { by, accepted })
        };
    }
    if outcome.by == verdict.by && !verdict.allow_self {
        return Step::refuse(node, Reason::SelfReview { by: verdict.by.clone() });
    }
    let state = match verdict.accept {
        true => node.state.clone(),
        false if node.is_spent() => {
            let reason = format!("rejected by {}, and its attempts are used up", verdict.by);
            State::Failed(Outcome::without_result(node, facts.now.wall_ms, &verdict.by, reason))
        }
        false => State::Ready,
    };
    let mut next = node.next(write, state);
    if let Standing::CalledOff { scope, .. } = standing(&next, facts) {
        // To be done again, where nothing starts any more.
        return Step::refuse(node, scope.refusal());
    }
    next.review = Some(Review {
        accepted: verdict.accept,
        by: verdict.by.clone(),
        note: verdict.note.clone(),
        at_ms: facts.now.wall_ms,
        extra: Map::new(),
    });
    Written::step(next)
}
