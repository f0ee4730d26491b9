//! A record as far as a list of nodes tells of it. Of a hundred thousand, most are plain ones: those are read without a
//! value for each of their fields, the others as ever.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::fields::END_OF_COUNTS;
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
        let requeues = self.requeues.unwrap_or_default();
        let counts = [self.version, self.generation, self.attempt, requeues];
        if more.iter().any(|it| it.is_some()) || counts.iter().any(|count| *count >= END_OF_COUNTS) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Records of every state, with all that one can have.
    fn records() -> Vec<Value> {
        let at = "2026-11-29T00:00:00.000Z";
        let clock = json!({"ends_mono_ms": 5, "machine": "m", "boot": "b", "time_namespace": "t"});
        let claim = json!({"owner": "o", "engine": "codex", "token_hash": "ab".repeat(32), "acquired_at": at,
            "expires_at": at, "lease_ms": 30000, "host": "h", "pid": 7, "clock": clock});
        let task = json!({"title": "t", "input": {"a": 1}, "input_hash": "ff", "queue": "q", "project": "p",
            "priority": 3, "after": ["d"], "review": true, "max_attempts": 5, "by": "s", "submitted_at": at});
        let outcome =
            json!({"state": "done", "result": 1, "reason": "r", "by": "x", "generation": 2, "at": at});
        let record = |state: &str, more: &[(&str, &Value)]| {
            let mut record = json!({"format": 1, "id": "a", "version": 4, "write": "00ff", "state": state,
                "generation": 2, "attempt": 1, "requeues": 1, "hint": "h", "progress": [1]});
            more.iter().for_each(|(name, value)| record[*name] = (*value).clone());
            record
        };
        let mut records = vec![
            record("ready", &[]),
            record("ready", &[("task", &task)]),
            record("claimed", &[("claim", &claim)]),
            record("claimed", &[("claim", &claim), ("task", &task)]),
            record("blocked", &[("block", &json!({"by": "b", "reason": "r", "at": at}))]),
        ];
        for state in ["done", "failed", "cancelled", "expired"] {
            let mut outcome = outcome.clone();
            outcome["state"] = json!(state);
            records.push(record(state, &[("outcome", &outcome), ("task", &task)]));
        }
        records
    }

    /// `record` with each of its values replaced or taken away in turn.
    fn spoilt(record: &Value, each: &mut dyn FnMut(&str, &Value)) {
        fn at(root: &mut Value, path: &[String], each: &mut dyn FnMut(&str, &Value)) {
            let pointer: String = path.iter().map(|part| format!("/{part}")).collect();
            let here = root.pointer(&pointer).cloned().unwrap_or_default();
            if let Value::Object(fields) = &here {
                for name in fields.keys() {
                    at(root, &[path, std::slice::from_ref(name)].concat(), each);
                    let mut less = fields.clone();
                    less.remove(name);
                    *root.pointer_mut(&pointer).unwrap() = Value::Object(less);
                    each(&format!("{pointer}/{name} taken away"), root);
                    *root.pointer_mut(&pointer).unwrap() = here.clone();
                }
            }
            for bad in [
                json!(null),
                json!(-1),
                json!(0),
                json!(u64::MAX),
                json!("x"),
                json!(""),
                json!([]),
                json!({}),
            ] {
                *root.pointer_mut(&pointer).unwrap() = bad.clone();
                each(&format!("{pointer} = {bad}"), root);
            }
            *root.pointer_mut(&pointer).unwrap() = here;
        }
        at(&mut record.clone(), &[], each);
    }

    /// The node without what a brief look leaves out.
    fn without(mut node: Node) -> Node {
        node.progress = None;
        node.hint = None;
        node.extra = Map::new();
        if let Some(task) = &mut node.task {
            (task.input, task.input_hash, task.extra) = (Value::Null, String::new(), Map::new());
        }
        if let State::Done(outcome)
        | State::Failed(outcome)
        | State::Cancelled(outcome)
        | State::Expired(outcome) = &mut node.state
        {
            (outcome.result, outcome.extra) = (Value::Null, Map::new());
        }
        node
    }

    /// What a brief look leaves out it need not check.
    const LEFT_OUT: [&str; 5] = ["/hint", "/progress", "/task/input", "/task/input_hash", "/outcome"];

    #[test]
    fn says_what_the_whole_record_says() {
        let id = NodeId::new("a").unwrap();
        for record in records() {
            assert!(decode(&id, record.to_string().as_bytes()).is_ok(), "{record}");
            spoilt(&record, &mut |what, record| {
                let bytes = record.to_string();
                match (decode(&id, bytes.as_bytes()), decode_brief(&id, bytes.as_bytes())) {
                    (Ok(whole), Ok(brief)) => assert_eq!(without(brief), without(whole), "{what}: {record}"),
                    (Err(whole), Err(brief)) => assert_eq!(brief, whole, "{what}: {record}"),
                    (Err(_), Ok(_)) if LEFT_OUT.iter().any(|field| what.starts_with(field)) => {}
                    (whole, brief) => panic!("{what}: {record}\n{whole:?}\n{brief:?}"),
                }
            });
        }
    }
}
