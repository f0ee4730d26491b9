//! From a record's fields to a node.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Malformed;
use super::fields::Fields;
use crate::domain::record::{
    Attempt, AttemptEnd, Blob, Block, Bound, Claim, Delay, Fingerprint, Forced, LastWrite, Moment, Name,
    Node, Note, Outcome, RepoPath, Resources, Review, State, Task, TokenHash, WriteId,
};
use crate::host::{Group, Place, Process};
use crate::id::NodeId;
use crate::time::MAX_LEASE;

/// The node that a record's fields say.
pub(in crate::domain) fn node(mut fields: Fields) -> Result<Node, Malformed> {
    super::check_format(&mut fields)?;
    let id: String = fields.take("id")?;
    let id = NodeId::new(id).map_err(|e| Malformed::Broken(e.to_string()))?;
    Ok(Node {
        id,
        version: fields.count("version")?,
        write: fields.with("write", WriteId::recorded)?,
        generation: fields.count("generation")?,
        attempt: fields.count("attempt")?,
        requeues: fields.with("requeues", |n: Option<u64>| Some(n.unwrap_or_default()))?,
        state: state(&mut fields)?,
        task: fields.object("task", task)?,
        review: fields.object("review", review)?,
        not_before: fields.object("not_before", delay)?,
        progress: fields.0.shift_remove("progress"),
        forced: fields.object("forced", forced)?,
        attempts: fields.list("attempts", attempt)?,
        notes: fields.list("notes", note)?,
        tombstoned: fields.with("tombstoned", |it: Option<bool>| Some(it.unwrap_or_default()))?,
        hint: fields.take("hint")?,
        last_write: fields.object("last_write", last_write)?,
        extra: fields.0,
    })
}

fn state(fields: &mut Fields) -> Result<State, Malformed> {
    let name: String = fields.take("state")?;
    let missing = |what: &str| Malformed::Broken(format!("it is {name} and has no {what:?}"));
    match name.as_str() {
        "ready" => Ok(State::Ready),
        "claimed" => fields.object("claim", claim)?.map(State::Claimed).ok_or_else(|| missing("claim")),
        "blocked" => fields.object("block", block)?.map(State::Blocked).ok_or_else(|| missing("block")),
        "done" | "failed" | "cancelled" | "expired" => {
            let outcome = fields.object("outcome", outcome)?.ok_or_else(|| missing("outcome"))?;
            Ok(match name.as_str() {
                "done" => State::Done(outcome),
                "failed" => State::Failed(outcome),
                "cancelled" => State::Cancelled(outcome),
                _ => State::Expired(outcome),
            })
        }
        _ => Err(Malformed::Broken(format!("its state {name:?} is unknown"))),
    }
}

fn claim(mut fields: Fields) -> Result<Claim, Malformed> {
    let longest = i64::try_from(MAX_LEASE.as_millis()).unwrap_or(i64::MAX);
    let mut unknown = Map::new();
    let clock = fields.object("clock", |mut clock| {
        let clock_end = (clock.take("ends_mono_ms")?, place(&mut clock)?);
        keep("clock", clock.0, &mut unknown);
        Ok(clock_end)
    })?;
    let (mono_ms, place) = clock.unwrap_or_default();
    let bound = fields.object("process", |process| bound(process, &mut unknown))?;
    Ok(Claim {
        owner: fields.take("owner")?,
        engine: name(&mut fields, "engine")?,
        token_hash: fields.with("token_hash", |hex: String| TokenHash::from_hex(&hex))?,
        acquired_ms: fields.time("acquired_at")?,
        ends: Moment { wall_ms: fields.time("expires_at")?, mono_ms, place },
        lease_ms: fields.with("lease_ms", |ms: i64| (ms > 0).then_some(ms.min(longest)))?,
        progressed: fields.object("progressed", |mut progressed| moment(&mut progressed))?.map(Box::new),
        host: fields.take("host")?,
        pid: fields.take("pid")?,
        bound,
        resources: Box::new(resources(&mut fields)?),
        extra: {
            unknown.extend(fields.0);
            unknown
        },
    })
}

/// A name that may be missing.
fn name(fields: &mut Fields, field: &str) -> Result<Option<Name>, Malformed> {
    fields.with(field, |name: Option<String>| name.map(Name::new).transpose().ok())
}

fn task(mut fields: Fields) -> Result<Task, Malformed> {
    Ok(Task {
        title: fields.take("title")?,
        input: fields.take("input")?,
        input_blob: fields.object("input_blob", blob)?,
        input_hash: fields.take("input_hash")?,
        queue: fields.with("queue", |name: Option<String>| {
            name.map_or_else(|| Some(Task::default_queue()), |name| Name::new(name).ok())
        })?,
        project: name(&mut fields, "project")?,
        priority: fields.with("priority", |n: Option<u8>| {
            Some(n.unwrap_or(Task::DEFAULT_PRIORITY)).filter(|n| *n <= Task::LAST_PRIORITY)
        })?,
        after: fields.with("after", |ids: Vec<String>| {
            ids.into_iter().map(NodeId::new).collect::<Result<Vec<_>, _>>().ok()
        })?,
        review: fields.take("review")?,
        resources: resources(&mut fields)?,
        max_attempts: fields.with("max_attempts", |n: u64| (n > 0).then_some(n))?,
        deadline: fields.object("deadline", |mut deadline| moment(&mut deadline))?,
        subscribers: fields.with("subscribers", |names: Option<Vec<String>>| {
            names.unwrap_or_default().into_iter().map(Name::new).collect::<Result<Vec<_>, _>>().ok()
        })?,
        by: fields.take("by")?,
        submitted_ms: fields.time("submitted_at")?,
        extra: fields.0,
    })
}

/// What goes with a claim, its lists not there if they are empty.
fn resources(fields: &mut Fields) -> Result<Resources, Malformed> {
    let mut resources = Resources::default();
    fields.with("paths", |paths: Option<Vec<String>>| {
        paths.into_iter().flatten().try_for_each(|path| {
            resources.add_path(RepoPath::recorded(path)?);
            Some(())
        })
    })?;
    fields.with("pools", |pools: Option<Vec<String>>| {
        pools.into_iter().flatten().try_for_each(|pool| {
            resources.add_pool(Name::new(pool).ok()?);
            Some(())
        })
    })?;
    fields.with("quotas", |quotas: Option<BTreeMap<String, u64>>| {
        quotas.into_iter().flatten().try_for_each(|(quota, amount)| {
            resources.add_quota(Name::new(quota).ok()?, amount);
            Some(())
        })
    })?;
    Ok(resources)
}

fn review(mut fields: Fields) -> Result<Review, Malformed> {
    Ok(Review {
        accepted: fields.with("state", |state: String| match state.as_str() {
            "accepted" => Some(true),
            "rejected" => Some(false),
            _ => None,
        })?,
        by: fields.take("by")?,
        note: fields.take("note")?,
        at_ms: fields.time("at")?,
        extra: fields.0,
    })
}

fn moment(fields: &mut Fields) -> Result<Moment, Malformed> {
    let clock = fields.object("clock", |mut clock| Ok((clock.take("at_mono_ms")?, place(&mut clock)?)))?;
    let (mono_ms, place) = clock.unwrap_or_default();
    Ok(Moment { wall_ms: fields.time("at")?, mono_ms, place })
}

fn delay(mut fields: Fields) -> Result<Delay, Malformed> {
    Ok(Delay {
        until: moment(&mut fields)?,
        length_ms: fields.take("length_ms")?,
        reason: fields.take("reason")?,
    })
}

pub(in crate::domain) fn last_write(mut fields: Fields) -> Result<LastWrite, Malformed> {
    Ok(LastWrite {
        receipt: fields.take("receipt")?,
        fingerprint: Fingerprint::recorded(fields.take("fingerprint")?),
        answer: fields.take("answer")?,
    })
}

pub(super) fn place(fields: &mut Fields) -> Result<Place, Malformed> {
    Ok(Place {
        machine: fields.take("machine")?,
        boot: fields.take("boot")?,
        time_namespace: fields.take("time_namespace")?,
    })
}

fn bound(mut fields: Fields, unknown: &mut Map<String, Value>) -> Result<Bound, Malformed> {
    let mut of_process = Map::new();
    let group = fields.object("group", |mut group| {
        let named = Group { id: group.take("id")?, start: group.take("start")? };
        keep("group", group.0, &mut of_process);
        Ok(named)
    })?;
    let bound = Bound {
        until_exit: fields.take("until_exit")?,
        process: Process {
            pid: fields.take("pid")?,
            start: fields.take("start")?,
            group,
            machine: fields.take("machine")?,
            boot: fields.take("boot")?,
            namespace: fields.take("namespace")?,
        },
    };
    of_process.extend(fields.0);
    keep("process", of_process, unknown);
    Ok(bound)
}

/// Notes what is unknown in the object `name` where the object around it keeps its own unknown fields.
pub(super) fn keep(name: &str, unknown: Map<String, Value>, around: &mut Map<String, Value>) {
    if !unknown.is_empty() {
        around.insert(name.to_owned(), Value::Object(unknown));
    }
}

fn block(mut fields: Fields) -> Result<Block, Malformed> {
    Ok(Block {
        reason: fields.take("reason")?,
        by: fields.take("by")?,
        at_ms: fields.time("at")?,
        until: fields.object("until", delay)?,
        extra: fields.0,
    })
}

fn attempt(mut fields: Fields) -> Result<Attempt, Malformed> {
    Ok(Attempt {
        number: fields.count("attempt")?,
        worker: fields.take("worker")?,
        engine: name(&mut fields, "engine")?,
        generation: fields.count("generation")?,
        started_ms: fields.time("started_at")?,
        ended_ms: fields.time("ended_at")?,
        end: fields.with("ended", |name: String| AttemptEnd::named(&name))?,
        error: fields.take("error")?,
        extra: fields.0,
    })
}

fn note(mut fields: Fields) -> Result<Note, Malformed> {
    Ok(Note {
        text: fields.take("text")?,
        by: fields.take("by")?,
        at_ms: fields.time("at")?,
        extra: fields.0,
    })
}

fn forced(mut fields: Fields) -> Result<Forced, Malformed> {
    Ok(Forced {
        reason: fields.take("reason")?,
        by: fields.take("by")?,
        from: fields.take("from")?,
        at_ms: fields.time("at")?,
        extra: fields.0,
    })
}

fn blob(mut fields: Fields) -> Result<Blob, Malformed> {
    Ok(Blob {
        name: fields.take("name")?,
        bytes: fields.count("bytes")?,
        hash: fields.take("hash")?,
        json: fields.take("json")?,
        extra: fields.0,
    })
}

fn outcome(mut fields: Fields) -> Result<Outcome, Malformed> {
    fields.0.shift_remove("state"); // said again for people; the record's own state decides
    Ok(Outcome {
        result: fields.take("result")?,
        blob: fields.object("blob", blob)?,
        reason: fields.take("reason")?,
        by: fields.take("by")?,
        generation: fields.count("generation")?,
        at_ms: fields.time("at")?,
        token_hash: fields.with("token_hash", |hex: Option<String>| match hex {
            None => Some(None),
            Some(hex) => TokenHash::from_hex(&hex).map(Some),
        })?,
        result_hash: fields.take("result_hash")?,
        extra: fields.0,
    })
}
