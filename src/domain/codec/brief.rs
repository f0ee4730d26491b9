//! A record as far as a list of nodes tells of it. Of a hundred thousand, most are plain ones: those are read without a
//! value for each of their fields, the others as ever.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::{FORMAT, Malformed, decode};
use crate::domain::record::{Claim, Moment, Name, Node, Outcome, Resources, State, Task, TokenHash, WriteId};
use crate::host::Place;
use crate::id::NodeId;
use crate::time::{MAX_LEASE, parse_rfc3339};

/// The node that `bytes` say, which must be `id`, without what is large or only kept: input, result and their hashes,
/// progress, attempts, notes, the last write, and what isn't known. Those need not be what they should, but the whole
/// must be JSON. For looking only: written back, it would lose them.
pub(crate) fn decode_brief(id: &NodeId, bytes: &[u8]) -> Result<Node, Malformed> {
    let plain = serde_json::from_slice::<Record<'_>>(bytes).ok();
    match plain
        .filter(|record| record.format <= FORMAT && record.id == id.as_str())
        .and_then(|it| it.node(id))
    {
        Some(node) => Ok(node),
        None => decode(id, bytes), // it is no plain one, or it is wrong, and then that says how
    }
}

type Text<'a> = Cow<'a, str>;

#[derive(Deserialize)]
struct Record<'a> {
    format: u64,
    #[serde(borrow)]
    id: Text<'a>,
    version: u64,
    #[serde(borrow)]
    write: Text<'a>,
    #[serde(borrow)]
    state: Text<'a>,
    generation: u64,
    attempt: u64,
    requeues: Option<u64>,
    #[serde(borrow)]
    claim: Option<PlainClaim<'a>>,
    #[serde(borrow)]
    outcome: Option<PlainOutcome<'a>>,
    #[serde(borrow)]
    task: Option<PlainTask<'a>>,
    block: Option<IgnoredAny>,
    not_before: Option<IgnoredAny>,
    review: Option<IgnoredAny>,
    forced: Option<IgnoredAny>,
    tombstoned: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct PlainClaim<'a> {
    #[serde(borrow)]
    owner: Text<'a>,
    #[serde(borrow)]
    engine: Option<Text<'a>>,
    #[serde(borrow)]
    token_hash: Text<'a>,
    #[serde(borrow)]
    acquired_at: Text<'a>,
    #[serde(borrow)]
    expires_at: Text<'a>,
    lease_ms: i64,
    #[serde(borrow)]
    host: Text<'a>,
    pid: u32,
    #[serde(borrow)]
    clock: Clock<'a>,
    progressed: Option<IgnoredAny>,
    process: Option<IgnoredAny>,
    paths: Option<IgnoredAny>,
    pools: Option<IgnoredAny>,
    quotas: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Clock<'a> {
    ends_mono_ms: i64,
    #[serde(borrow)]
    machine: Text<'a>,
    #[serde(borrow)]
    boot: Text<'a>,
    #[serde(borrow)]
    time_namespace: Text<'a>,
}

#[derive(Deserialize)]
struct PlainOutcome<'a> {
    #[serde(borrow)]
    by: Text<'a>,
    generation: u64,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    at: Text<'a>,
    blob: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct PlainTask<'a> {
    #[serde(borrow)]
    title: Option<Text<'a>>,
    #[serde(borrow)]
    queue: Option<Text<'a>>,
    #[serde(borrow)]
    project: Option<Text<'a>>,
    priority: Option<u8>,
    #[serde(borrow)]
    after: Vec<Text<'a>>,
    review: bool,
    max_attempts: u64,
    #[serde(borrow)]
    by: Text<'a>,
    #[serde(borrow)]
    submitted_at: Text<'a>,
    input_blob: Option<IgnoredAny>,
    deadline: Option<IgnoredAny>,
    subscribers: Option<IgnoredAny>,
    paths: Option<IgnoredAny>,
    pools: Option<IgnoredAny>,
    quotas: Option<IgnoredAny>,
}

impl Record<'_> {
    /// `None`: it is no plain one.
    fn node(self, id: &NodeId) -> Option<Node> {
        let more = [&self.block, &self.not_before, &self.review, &self.forced, &self.tombstoned];
        if more.iter().any(|it| it.is_some())
            || self.version >= u64::MAX / 2
            || self.generation >= u64::MAX / 2
        {
            return None;
        }
        let state = match (&*self.state, self.claim, self.outcome) {
            ("ready", ..) => State::Ready,
            ("claimed", Some(claim), _) => State::Claimed(claim.claim()?),
            ("done", _, Some(outcome)) => State::Done(outcome.outcome()?),
            ("failed", _, Some(outcome)) => State::Failed(outcome.outcome()?),
            ("cancelled", _, Some(outcome)) => State::Cancelled(outcome.outcome()?),
            ("expired", _, Some(outcome)) => State::Expired(outcome.outcome()?),
            _ => return None,
        };
        let write = WriteId::recorded(self.write.into_owned())?;
        let task = match self.task {
            Some(task) => Some(task.task()?),
            None => None,
        };
        let (version, generation, attempt) = (self.version, self.generation, self.attempt);
        let requeues = self.requeues.unwrap_or_default();
        Some(Node { version, write, generation, attempt, requeues, state, task, ..Node::unowned(id.clone()) })
    }
}

impl PlainClaim<'_> {
    fn claim(self) -> Option<Claim> {
        let more = [&self.progressed, &self.process, &self.paths, &self.pools, &self.quotas];
        if more.iter().any(|it| it.is_some()) || self.lease_ms <= 0 {
            return None;
        }
        let Clock { ends_mono_ms, machine, boot, time_namespace } = self.clock;
        let [machine, boot, time_namespace] = [machine, boot, time_namespace].map(Cow::into_owned);
        Some(Claim {
            owner: self.owner.into_owned(),
            engine: optional(self.engine)?,
            token_hash: TokenHash::from_hex(&self.token_hash)?,
            acquired_ms: parse_rfc3339(&self.acquired_at)?,
            ends: Moment {
                wall_ms: parse_rfc3339(&self.expires_at)?,
                mono_ms: ends_mono_ms,
                place: Place { machine, boot, time_namespace },
            },
            lease_ms: self.lease_ms.min(i64::try_from(MAX_LEASE.as_millis()).unwrap_or(i64::MAX)),
            progressed: None,
            host: self.host.into_owned(),
            pid: self.pid,
            bound: None,
            resources: Box::default(),
            extra: Map::new(),
        })
    }
}

impl PlainOutcome<'_> {
    fn outcome(self) -> Option<Outcome> {
        self.blob.is_none().then_some(())?;
        Some(Outcome {
            result: Value::Null,
            blob: None,
            reason: self.reason.map(Cow::into_owned),
            by: self.by.into_owned(),
            generation: self.generation,
            at_ms: parse_rfc3339(&self.at)?,
            token_hash: None,
            result_hash: None,
            extra: Map::new(),
        })
    }
}

impl PlainTask<'_> {
    fn task(self) -> Option<Task> {
        let more =
            [&self.input_blob, &self.deadline, &self.subscribers, &self.paths, &self.pools, &self.quotas];
        let priority = self.priority.unwrap_or(Task::DEFAULT_PRIORITY);
        if more.iter().any(|it| it.is_some()) || priority > Task::LAST_PRIORITY || self.max_attempts == 0 {
            return None;
        }
        Some(Task {
            title: self.title.map(Cow::into_owned),
            input: Value::Null,
            input_blob: None,
            input_hash: String::new(),
            queue: optional(self.queue)?.unwrap_or_else(Task::default_queue),
            project: optional(self.project)?,
            priority,
            after: self.after.into_iter().map(NodeId::new).collect::<Result<_, _>>().ok()?,
            review: self.review,
            resources: Resources::default(),
            max_attempts: self.max_attempts,
            deadline: None,
            subscribers: Vec::new(),
            by: self.by.into_owned(),
            submitted_ms: parse_rfc3339(&self.submitted_at)?,
            extra: Map::new(),
        })
    }
}

/// A name that may be missing; `None`: it is none.
fn optional(name: Option<Text<'_>>) -> Option<Option<Name>> {
    name.map(|name| Name::new(name.into_owned()).ok()).map_or(Some(None), |name| name.map(Some))
}
