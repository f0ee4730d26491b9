//! What the board shows, as data: nodes with what they stand at, queues, pools, quotas. Pure.

use std::collections::BTreeMap;

use claimdir::domain::Event;
use claimdir::host::Now;
use claimdir::time::rfc3339;
use claimdir::{Halt, PoolSeen, QuotaSeen, Scope};
use serde_json::{Map, Value, json};

use super::row::Row;
use crate::cli::args::StateFilter;
use crate::cli::report::{halt_json, holder_json};

/// All states, in the order in which they are counted out.
pub(crate) const STATES: [StateFilter; 8] = [
    StateFilter::Claimed,
    StateFilter::Ready,
    StateFilter::Waiting,
    StateFilter::Blocked,
    StateFilter::Failed,
    StateFilter::Expired,
    StateFilter::Cancelled,
    StateFilter::Done,
];

/// All that was read at one time.
#[derive(Debug)]
pub(crate) struct Board {
    /// The claim directory.
    pub(crate) place: String,
    /// When it was read.
    pub(crate) at: Now,
    /// In order of their ids.
    pub(crate) rows: Vec<Row>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) pools: Vec<PoolSeen>,
    pub(crate) quotas: Vec<QuotaSeen>,
    /// What can't be read.
    pub(crate) unreadable: Vec<String>,
    /// What happened last, the newest first.
    pub(crate) events: Vec<Event>,
}

/// A queue and how many tasks it has in each state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Queue {
    /// `None`: bare keys, which are in no queue.
    pub(crate) name: Option<String>,
    pub(crate) scope: Option<(String, Scope)>,
    pub(crate) counts: Counts,
    pub(crate) paused: Option<Halt>,
}

/// How many nodes are in each state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts(BTreeMap<StateFilter, u64>);

impl Counts {
    fn add(&mut self, state: StateFilter) {
        *self.0.entry(state).or_default() += 1;
    }

    pub(crate) fn of(&self, state: StateFilter) -> u64 {
        self.0.get(&state).copied().unwrap_or_default()
    }

    /// Those that there are, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (StateFilter, u64)> + '_ {
        STATES.into_iter().map(|state| (state, self.of(state))).filter(|(_, count)| *count > 0)
    }

    fn json(&self) -> Value {
        Value::Object(self.all().map(|(state, count)| (state.name().to_owned(), json!(count))).collect())
    }
}

/// The queues that these nodes are in, not paused as far as is known here. Bare keys come last.
pub(crate) fn queues(rows: &[Row]) -> Vec<Queue> {
    let mut queues: BTreeMap<(bool, Option<&str>, Option<&str>), Queue> = BTreeMap::new();
    for row in rows {
        let scope = row.scope.as_ref().filter(|_| row.queue.is_some());
        let key = (row.queue.is_none(), scope.map(|(name, _)| name.as_str()), row.queue.as_deref());
        let new = || Queue { name: row.queue.clone(), scope: scope.cloned(), ..Queue::default() };
        queues.entry(key).or_insert_with(new).counts.add(row.state);
    }
    queues.into_values().collect()
}

impl Queue {
    /// As people read it.
    pub(crate) fn title(&self) -> String {
        let name = self.name.as_deref().unwrap_or("(bare keys)");
        match &self.scope {
            Some((scope, _)) => format!("{scope} {name}"),
            None => name.to_owned(),
        }
    }

    fn json(&self) -> Value {
        json!({
            "queue": self.name,
            "scope": self.scope.as_ref().map(|(name, _)| name),
            "states": self.counts.json(),
            "paused": self.paused.as_ref().map(halt_json),
        })
    }
}

impl Board {
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.rows.iter().for_each(|row| counts.add(row.state));
        counts
    }

    /// For programs.
    pub(crate) fn json(&self) -> Map<String, Value> {
        let pool = |pool: &PoolSeen| {
            let used = pool.used.iter().map(
                |(node, holder)| json!({"node": node.as_str(), "holder": holder.as_ref().map(holder_json)}),
            );
            json!({"pool": pool.name.as_str(), "slots": pool.slots, "used": used.collect::<Vec<_>>()})
        };
        let quota = |quota: &QuotaSeen| {
            json!({
                "quota": quota.name.as_str(),
                "limit": quota.rate.limit(),
                "period_ms": quota.rate.period_ms(),
                "used": quota.used,
                "next_free_in_ms": quota.next_free_in_ms,
            })
        };
        let fields = json!({
            "at": rfc3339(self.at.wall_ms),
            "states": self.counts().json(),
            "nodes": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "queues": self.queues.iter().map(Queue::json).collect::<Vec<_>>(),
            "pools": self.pools.iter().map(pool).collect::<Vec<_>>(),
            "quotas": self.quotas.iter().map(quota).collect::<Vec<_>>(),
            "unreadable": self.unreadable,
            "events": self.events.iter().map(|event| Value::Object(event.to_json())).collect::<Vec<_>>(),
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}
