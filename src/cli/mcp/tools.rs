//! The tools: what they take, as types, and what a client is told of them. The comments are the descriptions.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use rmcp::schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use claimdir::{Error, Result};

use crate::cli::args::StateFilter;

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    pub(super) id: String,
    /// Like 30s or 5m
    pub(super) lease: Option<String>,
    /// Wait for it so long, at most 50s
    pub(super) wait: Option<String>,
    /// Files or folders that only you may then write
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) paths: Vec<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) pools: Vec<String>,
    /// NAME=AMOUNT
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) quotas: Vec<String>,
    /// A secret made up once: the same call again gets the same answer
    pub(super) receipt: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Renew {
    pub(super) id: String,
    /// Unless claimed here
    pub(super) token: Option<String>,
    pub(super) lease: Option<String>,
    /// What the next owner should find
    pub(super) progress: Option<Value>,
    pub(super) receipt: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Complete,
    Retry,
    Reject,
    Release,
    Block,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Finish {
    pub(super) id: String,
    pub(super) outcome: Outcome,
    /// Unless claimed here
    pub(super) token: Option<String>,
    /// Text or JSON, of complete
    pub(super) result: Option<Value>,
    /// Of retry, reject, block
    pub(super) reason: Option<String>,
    /// Retry not before so long
    pub(super) after: Option<String>,
    pub(super) receipt: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Next {
    pub(super) queue: Option<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) projects: Vec<String>,
    pub(super) lease: Option<String>,
    /// At most 50s
    pub(super) wait: Option<String>,
    /// Only say which
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) dry_run: bool,
    pub(super) receipt: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "lowercase")]
pub(super) enum What {
    State,
    List,
    Show,
    Why,
    Check,
    Log,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Look {
    pub(super) what: What,
    /// Of show, why, check, log
    pub(super) id: Option<String>,
    /// Of check
    pub(super) token: Option<String>,
    /// Of check: may these be written?
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) paths: Vec<String>,
    /// Of list, like the next three
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) states: Vec<StateFilter>,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) queues: Vec<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) projects: Vec<String>,
    pub(super) owner: Option<String>,
    /// Of log: how long ago, or RFC 3339
    pub(super) since: Option<String>,
    /// Of list, log: 20, at most 200
    pub(super) limit: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Send,
    Read,
    Ack,
    Peek,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct Mail {
    pub(super) action: Action,
    /// Peek without: all
    #[serde(rename = "box")]
    pub(super) of: Option<String>,
    /// Of send: any JSON
    #[serde(default, deserialize_with = "or_null")]
    pub(super) payload: Option<Value>,
    /// Of ack: the last one dealt with
    pub(super) number: Option<u64>,
    /// Your name, unless the owner
    #[serde(rename = "as")]
    pub(super) by: Option<String>,
    /// Of read: 10
    pub(super) limit: Option<u64>,
    /// Of read, at most 50s
    pub(super) wait: Option<String>,
    /// Of send: once per box
    pub(super) work_key: Option<String>,
    /// Of send: only while you hold this node
    pub(super) claim: Option<String>,
    pub(super) receipt: Option<String>,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Claim(Claim),
    Renew(Renew),
    Finish(Finish),
    Next(Next),
    Look(Look),
    Mail(Mail),
}

impl Call {
    /// What the tool `name` is to do. `None`: there is no such tool.
    pub(super) fn of(name: &str, arguments: Option<JsonObject>) -> Option<Result<Call>> {
        let arguments = arguments.unwrap_or_default();
        Some(match name {
            "claim" => read(arguments).map(Call::Claim),
            "renew" => read(arguments).map(Call::Renew),
            "finish" => read(arguments).map(Call::Finish),
            "next" => read(arguments).map(Call::Next),
            "look" => read(arguments).map(Call::Look),
            "mail" => read(arguments).map(Call::Mail),
            _ => return None,
        })
    }

    /// May it wait?
    pub(super) fn waits(&self) -> bool {
        match self {
            Call::Claim(Claim { wait, .. })
            | Call::Next(Next { wait, .. })
            | Call::Mail(Mail { wait, .. }) => wait.is_some(),
            Call::Renew(_) | Call::Finish(_) | Call::Look(_) => false,
        }
    }
}

/// Null is nothing said, as it is of what is an `Option`.
fn or_nothing<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> std::result::Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Null is what is said.
fn or_null<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Writes 5.0 as 5, which it is by JSON Schema.
fn without_point(value: &mut Value) {
    let whole = value.as_f64().filter(|number| value.is_f64() && number.fract() == 0.0);
    if let Some(number) = whole.and_then(|number| format!("{number:.0}").parse::<i64>().ok()) {
        *value = number.into();
    }
}

fn read<T: DeserializeOwned>(mut arguments: JsonObject) -> Result<T> {
    for name in ["number", "limit"] {
        arguments.get_mut(name).into_iter().for_each(without_point);
    }
    // As text: from a value, numbers beyond 64 bits can't be read.
    let text = Value::Object(arguments).to_string();
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(&text)).map_err(|error| {
        let path = error.path().to_string();
        let why = error.into_inner().to_string();
        let why = why.rsplit_once(" at line ").map_or(why.as_str(), |(why, _)| why);
        Error::usage(if path == "." || why.contains(&format!("`{path}`")) {
            why.to_owned()
        } else {
            format!("{path}: {why}")
        })
    })
}

/// All tools, as a client is told of them.
pub(super) fn all() -> Vec<Tool> {
    let tool = |name: &'static str, about: &'static str, takes: JsonObject, hints: ToolAnnotations| {
        Tool::new(name, about, takes).with_annotations(hints.open_world(false))
    };
    let writes = || ToolAnnotations::new().read_only(false).destructive(false);
    vec![
        tool(
            "claim",
            "Take the node `id` (any name: a task, a file, a ticket) for yourself. It is yours only if `ok`. It is renewed \
             while you are here.",
            schema::<Claim>(),
            writes().idempotent(false),
        ),
        tool(
            "renew",
            "Let a claim end later; leave word of your progress.",
            schema::<Renew>(),
            writes().idempotent(true),
        ),
        tool(
            "finish",
            "End a claim. complete: done, with its one result; retry: again later; reject: failed for good; release: free \
             again; block: free, but not to be taken.",
            schema::<Finish>(),
            writes().destructive(true).idempotent(true),
        ),
        tool(
            "next",
            "Take the first task of a queue that can be taken; the answer has its `input`.",
            schema::<Next>(),
            writes().idempotent(false),
        ),
        tool(
            "look",
            "Change nothing. state: what you hold, what is next, which mail waits; list: nodes; show: a node; why: can it be \
             taken; check: is it still yours (ask before side effects); log: what happened.",
            schema::<Look>(),
            ToolAnnotations::new().read_only(true),
        ),
        tool(
            "mail",
            "Messages in boxes. read hands them out again until you ack; peek lists boxes and readers.",
            schema::<Mail>(),
            writes().idempotent(false),
        ),
    ]
}

/// What a type takes, in as few words as are needed: every agent pays for them.
fn schema<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    slim(&mut schema);
    match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    }
}

/// Leaves out what nobody needs to be told: names of types, widths of numbers, defaults, and that what may be left out may
/// also be null.
fn slim(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    for name in ["title", "format", "default", "minimum"] {
        if fields.get(name).is_some_and(|value| !value.is_object()) {
            fields.remove(name);
        }
    }
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            fields.insert("type".to_owned(), one);
        }
    }
    fields.values_mut().for_each(|value| match value {
        Value::Object(inner) if inner.contains_key("type") || inner.contains_key("enum") => slim(value),
        Value::Object(inner) => inner.values_mut().for_each(slim),
        _ => {}
    });
}
