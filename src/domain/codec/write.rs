//! From a node to a record's fields.

use serde_json::{Map, Value, json};

use super::FORMAT;
use crate::domain::record::{
    Attempt, Blob, Block, Bound, Claim, Delay, Forced, LastWrite, Moment, Name, Node, Note, Outcome,
    Resources, Review, State, Task,
};
use crate::host::{Group, Place};
use crate::time::rfc3339;

/// JSON that `cat` shows well.
pub(in crate::domain) fn to_bytes(map: &Map<String, Value>) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(map).unwrap_or_default(); // maps with text keys: no error is possible
    bytes.push(b'\n');
    bytes
}

/// The record for people and scripts: its fields by their names, without the secrets' hashes and what only the
/// store needs.
pub fn for_show(node: &Node) -> Map<String, Value> {
    to_json(node, false)
}

pub(in crate::domain) fn to_json(node: &Node, secrets: bool) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
    put("format", json!(FORMAT));
    put("id", json!(node.id.as_str()));
    put("version", json!(node.version));
    put("write", json!(node.write.to_string()));
    put("state", json!(node.state.name()));
    put("generation", json!(node.generation));
    put("attempt", json!(node.attempt));
    if node.requeues > 0 {
        put("requeues", json!(node.requeues));
    }
    if node.tombstoned {
        put("tombstoned", json!(true));
    }
    match &node.state {
        State::Ready => {}
        State::Claimed(claim) => {
            put("claim", claim_json(claim, secrets));
        }
        State::Blocked(block) => {
            put("block", block_json(block));
        }
        State::Done(outcome)
        | State::Failed(outcome)
        | State::Cancelled(outcome)
        | State::Expired(outcome) => {
            put("outcome", outcome_json(node.state.name(), outcome, secrets));
        }
    }
    if let Some(task) = &node.task {
        put("task", task_json(task));
    }
    if let Some(Review { accepted, by, note, at_ms, extra }) = &node.review {
        let state = if *accepted { "accepted" } else { "rejected" };
        let json = json!({"state": state, "by": by, "note": note, "at": rfc3339(*at_ms)});
        put("review", with_extra(json, extra));
    }
    if let Some(delay) = &node.not_before {
        put("not_before", delay_json(delay));
    }
    if let Some(progress) = &node.progress {
        put("progress", progress.clone());
    }
    if let Some(forced) = &node.forced {
        let Forced { reason, by, from, at_ms, extra } = forced;
        let json = json!({"reason": reason, "by": by, "from": from, "at": rfc3339(*at_ms)});
        put("forced", with_extra(json, extra));
    }
    if !node.attempts.is_empty() {
        put("attempts", node.attempts.iter().map(attempt_json).collect());
    }
    if !node.notes.is_empty() {
        put("notes", node.notes.iter().map(note_json).collect());
    }
    if let Some(hint) = node.hint.as_ref().filter(|_| secrets) {
        map.insert("hint".to_owned(), json!(hint));
    }
    if let Some(last) = node.last_write.as_ref().filter(|_| secrets) {
        map.insert("last_write".to_owned(), last_write_json(last));
    }
    for (name, value) in &node.extra {
        map.entry(name.as_str()).or_insert_with(|| value.clone());
    }
    map
}

/// An attempt, as records and answers have it.
pub fn attempt_json(attempt: &Attempt) -> Value {
    let mut json = json!({
        "attempt": attempt.number,
        "worker": attempt.worker,
        "generation": attempt.generation,
        "started_at": rfc3339(attempt.started_ms),
        "ended_at": rfc3339(attempt.ended_ms),
        "ended": attempt.end.name(),
        "error": attempt.error,
    });
    put_engine(&mut json, attempt.engine.as_ref());
    with_extra(json, &attempt.extra)
}

fn note_json(note: &Note) -> Value {
    let json = json!({"text": note.text, "by": note.by, "at": rfc3339(note.at_ms)});
    with_extra(json, &note.extra)
}

fn block_json(block: &Block) -> Value {
    let mut json = json!({"reason": block.reason, "by": block.by, "at": rfc3339(block.at_ms)});
    if let Some(until) = &block.until {
        json["until"] = delay_json(until);
    }
    with_extra(json, &block.extra)
}

fn delay_json(delay: &Delay) -> Value {
    let Delay { until, length_ms, reason } = delay;
    let clock = clock_json("at_mono_ms", until);
    json!({"at": rfc3339(until.wall_ms), "length_ms": length_ms, "reason": reason, "clock": clock})
}

fn task_json(task: &Task) -> Value {
    let after: Vec<&str> = task.after.iter().map(|id| id.as_str()).collect();
    let mut json = json!({
        "title": task.title,
        "input": task.input,
        "input_hash": task.input_hash,
        "queue": task.queue.as_str(),
        "project": task.project.as_ref().map(Name::as_str),
        "priority": task.priority,
        "after": after,
        "review": task.review,
        "max_attempts": task.max_attempts,
        "by": task.by,
        "submitted_at": rfc3339(task.submitted_ms),
    });
    if let Some(blob) = &task.input_blob {
        json["input_blob"] = blob_json(blob);
    }
    put_resources(&mut json, &task.resources);
    if let Some(deadline) = &task.deadline {
        json["deadline"] = moment_json(deadline);
    }
    if !task.subscribers.is_empty() {
        json["subscribers"] = task.subscribers.iter().map(Name::as_str).collect();
    }
    with_extra(json, &task.extra)
}

/// Adds what drives an owner, if that was said.
fn put_engine(json: &mut Value, engine: Option<&Name>) {
    if let Some(engine) = engine {
        json["engine"] = json!(engine.as_str());
    }
}

/// Adds what goes with a claim; lists that are empty are left out.
fn put_resources(json: &mut Value, resources: &Resources) {
    for (name, value) in resources.fields() {
        if !matches!(&value, Value::Array(v) if v.is_empty())
            && !matches!(&value, Value::Object(v) if v.is_empty())
        {
            json[name] = value;
        }
    }
}

pub(in crate::domain) fn last_write_json(last: &LastWrite) -> Value {
    json!({"receipt": last.receipt, "fingerprint": last.fingerprint.hex(), "answer": last.answer})
}

fn moment_json(moment: &Moment) -> Value {
    json!({"at": rfc3339(moment.wall_ms), "clock": clock_json("at_mono_ms", moment)})
}

/// The monotonic part of a moment, its time under `name`.
pub(super) fn clock_json(name: &str, moment: &Moment) -> Value {
    let Place { machine, boot, time_namespace } = &moment.place;
    json!({name: moment.mono_ms, "machine": machine, "boot": boot, "time_namespace": time_namespace})
}

fn claim_json(claim: &Claim, secrets: bool) -> Value {
    let mut json = json!({
        "owner": claim.owner,
        "acquired_at": rfc3339(claim.acquired_ms),
        "expires_at": rfc3339(claim.ends.wall_ms),
        "lease_ms": claim.lease_ms,
        "host": claim.host,
        "pid": claim.pid,
        "clock": clock_json("ends_mono_ms", &claim.ends),
    });
    if secrets {
        json["token_hash"] = json!(claim.token_hash.hex());
    }
    put_engine(&mut json, claim.engine.as_ref());
    if let Some(progressed) = &claim.progressed {
        json["progressed"] = moment_json(progressed);
    }
    put_resources(&mut json, &claim.resources);
    if let Some(Bound { process, until_exit }) = &claim.bound {
        let group = process.group.map(|Group { id, start }| json!({"id": id, "start": start}));
        json["process"] = json!({
            "pid": process.pid,
            "start": process.start,
            "group": group,
            "machine": process.machine,
            "boot": process.boot,
            "namespace": process.namespace,
            "until_exit": until_exit,
        });
    }
    with_extra(json, &claim.extra)
}

fn blob_json(blob: &Blob) -> Value {
    let Blob { name, bytes, hash, json, extra } = blob;
    with_extra(json!({"name": name, "bytes": bytes, "hash": hash, "json": json}), extra)
}

fn outcome_json(state: &str, outcome: &Outcome, secrets: bool) -> Value {
    let mut json = json!({
        "state": state,
        "result": outcome.result,
        "reason": outcome.reason,
        "by": outcome.by,
        "generation": outcome.generation,
        "at": rfc3339(outcome.at_ms),
    });
    if let Some(blob) = &outcome.blob {
        json["blob"] = blob_json(blob);
    }
    if secrets {
        json["token_hash"] = json!(outcome.token_hash.map(|hash| hash.hex()));
        if let Some(hash) = &outcome.result_hash {
            json["result_hash"] = json!(hash);
        }
    }
    with_extra(json, &outcome.extra)
}

/// Adds the fields that are unknown, also those of the objects within. What is known wins.
pub(super) fn with_extra(mut json: Value, extra: &Map<String, Value>) -> Value {
    if let Value::Object(known) = &mut json {
        for (name, value) in extra {
            match (known.get_mut(name), value) {
                (None, _) => {
                    known.insert(name.clone(), value.clone());
                }
                (Some(inner), Value::Object(extra)) => *inner = with_extra(inner.take(), extra),
                (Some(_), _) => {}
            }
        }
    }
    json
}
