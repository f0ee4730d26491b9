//! What one server knows beyond the claim directory: which claims it took, and for which call.
//!
//! Everything stands under one lock, which is never held while the directory is asked.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use claimdir::domain::{Fate, Node};
use claimdir::{NodeId, Refusal, Token};
use rmcp::model::RequestId;
use serde_json::{Map, Value, json};

use crate::cli::args::{self, Global};
use crate::cli::context::Context;
use crate::cli::report::Answer;
use crate::cli::run::supervise::became;
use crate::cli::text::harmless;

/// How soon a renewal is tried again that failed, at the most.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Session {
    pub(super) defaults: args::Mcp,
    global: Global,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    held: Vec<Held>,
    /// The last token of each node that was ever held here: what is done twice is answered as the second time, and what is
    /// done with a lost claim is refused as that.
    tokens: HashMap<NodeId, Token>,
    /// The calls that are being answered, or give back what they took; true: called off.
    calls: HashMap<RequestId, bool>,
    /// What the next answer tells of, and what the last one told of.
    lost: Vec<Lost>,
    told: Option<(RequestId, Vec<Lost>)>,
    last_call: Instant,
    ended: bool,
}

/// A claim that this server took.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) id: NodeId,
    pub(super) token: Token,
    /// The record as it was taken, if it could be read again: it tells what was settled with this token elsewhere.
    taken: Option<Box<Node>>,
    generation: u64,
    /// How often it is to be renewed.
    pace: Duration,
    due: Instant,
    /// The call that it was taken by, until the agent has spoken of it since: before, it may never have heard.
    by: Option<RequestId>,
    has_receipt: bool,
    /// Left to its lease until the agent comes back for it with its receipt.
    asleep: bool,
    /// Calls that work with its token just now. What becomes of it is for them to tell.
    in_use: usize,
}

/// A claim that is no longer this server's.
struct Lost {
    id: NodeId,
    generation: u64,
    refusal: Refusal,
}

impl Session {
    pub(super) fn new(defaults: args::Mcp, global: Global) -> Session {
        let state = State {
            held: Vec::new(),
            tokens: HashMap::new(),
            calls: HashMap::new(),
            lost: Vec::new(),
            told: None,
            last_call: Instant::now(),
            ended: false,
        };
        let global = Global { json: true, quiet: false, ..global };
        Session { defaults, global, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// In which directory and whose name a call is answered. Each has its own: nothing is kept of what may have changed.
    pub(super) fn context(&self) -> Context {
        Context::new(self.global.clone())
    }

    /// The same without the owner's name, which is a filter to those who look.
    pub(super) fn context_for(&self, owner: Option<String>) -> Context {
        Context::new(Global { owner, ..self.global.clone() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call has come. No other that is not done has its id.
    pub(super) fn begin(&self, call: &RequestId) {
        let mut state = self.state();
        state.calls.insert(call.clone(), false);
        state.last_call = Instant::now();
        self.changed.notify_all();
    }

    /// Nobody waits for its answer any more.
    pub(super) fn is_called_off(&self, call: &RequestId) -> bool {
        let state = self.state();
        state.ended || state.calls.get(call).is_some_and(|called_off| *called_off)
    }

    /// Nobody is there any more: waits end, and nothing is taken or renewed.
    pub(super) fn close(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }

    /// A call that was called off has given back what it took.
    pub(super) fn done(&self, call: &RequestId) {
        self.state().calls.remove(call);
        self.changed.notify_all();
    }

    /// The client throws the answer away. What is to be given back, if it has been given already; then the call is
    /// [`Session::done`].
    pub(super) fn call_off(&self, call: &RequestId) -> Option<Held> {
        let mut state = self.state();
        if let Some(called_off) = state.calls.get_mut(call) {
            *called_off = true;
            return None;
        }
        if let Some((_, lost)) = state.told.take_if(|(told, _)| told == call) {
            state.lost.extend(lost);
        }
        let at = state.held.iter().position(|held| held.by.as_ref() == Some(call))?;
        if let Some(held) = state.held.get_mut(at).filter(|held| held.has_receipt) {
            held.asleep = true;
            return None;
        }
        state.calls.insert(call.clone(), true);
        Some(state.held.remove(at))
    }

    /// A call is about to be answered, having taken `taken`. The claims that were lost since the last answer; `None`: it
    /// was called off, and what it took must be given back before it is [`Session::done`].
    pub(super) fn hand_over(&self, call: &RequestId, taken: Option<Held>) -> Option<Vec<(String, Value)>> {
        let mut state = self.state();
        let called_off = state.calls.get(call).copied().unwrap_or_default();
        if let Some(mut taken) = taken {
            if (called_off || state.ended) && !taken.has_receipt {
                return None;
            }
            taken.by = Some(call.clone());
            taken.asleep = called_off;
            state.held.retain(|held| held.id != taken.id);
            state.tokens.insert(taken.id.clone(), taken.token.clone());
            state.held.push(taken);
        }
        if called_off {
            return None;
        }
        state.calls.remove(call);
        self.changed.notify_all();
        state.last_call = Instant::now();
        let lost = std::mem::take(&mut state.lost);
        let told = lost.iter().map(Lost::told).collect();
        if !lost.is_empty() {
            state.told = Some((call.clone(), lost));
        }
        Some(told)
    }

    /// The token of the claim that is held here, or was.
    pub(super) fn token(&self, id: &NodeId) -> Option<Token> {
        self.state().tokens.get(id).cloned()
    }

    /// A call works with this token from now on.
    pub(super) fn in_use(&self, token: &Token) {
        self.with(token, |held| {
            held.in_use += 1;
            held.by = None;
            held.asleep = false;
        });
    }

    /// It works with it no more. `ends`: what it said of the claim is that it is over, or how long it lasts.
    pub(super) fn out_of_use(&self, token: &Token, ends: Option<Ends>) {
        match ends {
            Some(Ends::Over) => self.state().held.retain(|held| held.token != *token),
            Some(Ends::After(length)) => self.with(token, |held| held.last(length)),
            None => {}
        }
        self.with(token, |held| held.in_use = held.in_use.saturating_sub(1));
    }

    fn with(&self, token: &Token, change: impl FnOnce(&mut Held)) {
        if let Some(held) = self.state().held.iter_mut().find(|held| held.token == *token) {
            change(held);
        }
        self.changed.notify_all();
    }

    /// What is held here, for `look`.
    pub(super) fn held(&self) -> Vec<Value> {
        let state = self.state();
        let json = |held: &Held| json!({"id": held.id.as_str(), "generation": held.generation});
        state.held.iter().map(json).collect()
    }

    /// Asks of every claim whether it is still live, so that the next answer can tell of those that are not.
    pub(super) fn look_after(&self) {
        let held: Vec<Held> = self.state().held.iter().filter(|held| held.in_use == 0).cloned().collect();
        if held.is_empty() {
            return;
        }
        let Ok(directory) = self.context().directory() else { return };
        for held in held {
            // What can't be read now is read again.
            if let Ok(Err(refusal)) = directory.check(&held.id, &held.token) {
                self.refused(&held, refusal);
            }
        }
    }

    /// A claim is not live any more: lost, unless somebody has settled it with its token.
    pub(super) fn refused(&self, refused: &Held, refusal: Refusal) {
        let is_settled = refused.taken.as_ref().is_some_and(|taken| {
            let directory = self.context().directory();
            directory.is_ok_and(|directory| matches!(became(&directory, taken), Fate::Settled))
        });
        let mut state = self.state();
        let Some(at) = state.held.iter().position(|held| held.token == refused.token) else { return };
        if let Some(held) = state.held.get_mut(at).filter(|held| held.in_use > 0) {
            held.due = Instant::now() + AGAIN;
            return;
        }
        let Held { id, generation, .. } = state.held.remove(at);
        if !is_settled {
            state.lost.push(Lost { id, generation, refusal });
        }
    }

    /// Waits for the next claim that is to be renewed; `None`: nothing is any more.
    pub(super) fn next_due(&self) -> Option<Held> {
        let mut state = self.state();
        loop {
            if state.ended {
                return None;
            }
            let now = Instant::now();
            let kept_until = state.last_call.checked_add(self.defaults.keep);
            let is_kept = kept_until.is_none_or(|until| now < until);
            let first = state.held.iter().filter(|held| is_kept && !held.asleep).min_by_key(|held| held.due);
            let nap = match first {
                Some(held) if held.due <= now => return Some(held.clone()),
                Some(held) => held.due - now,
                None => Duration::MAX,
            };
            state = match nap {
                Duration::MAX => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                nap => self.changed.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    pub(super) fn renewed(&self, held: &Held) {
        self.with(&held.token, |held| held.due = Instant::now() + held.pace);
    }

    pub(super) fn not_renewed(&self, held: &Held) {
        self.with(&held.token, |held| held.due = Instant::now() + (held.pace / 10).min(AGAIN));
    }

    /// The same, and waits until all calls have ended and have given back what they took, for `patience` at most.
    pub(super) fn end(&self, patience: Duration) {
        self.close();
        let state = self.state();
        let _ = self.changed.wait_timeout_while(state, patience, |state| !state.calls.is_empty());
    }
}

/// What an answer says of a claim.
pub(super) enum Ends {
    Over,
    /// With its lease, so long from now.
    After(Duration),
}

impl Ends {
    /// Of the answer of a command that was shown the token; `settles`: a yes ends the claim.
    pub(super) fn of(answer: &Answer, settles: bool) -> Option<Ends> {
        match answer.exit {
            0 if settles => Some(Ends::Over),
            0 => remaining(&answer.object).map(Ends::After),
            3 => Some(Ends::Over),
            _ => None,
        }
    }
}

fn remaining(answer: &Map<String, Value>) -> Option<Duration> {
    answer.get("remaining_ms").and_then(Value::as_u64).map(Duration::from_millis)
}

impl Held {
    /// The claim that an answer tells of, if it does, and if it is live.
    pub(super) fn of(answer: &Answer, has_receipt: bool, context: &Context) -> Option<Held> {
        let text = |name: &str| answer.object.get(name).and_then(Value::as_str);
        let is_lost = answer.object.get("lost").is_none_or(|lost| *lost != Value::Bool(false));
        if answer.exit != 0 || is_lost {
            return None;
        }
        let id = NodeId::new(text("id")?).ok()?;
        let token = Token::shown(text("token")?);
        let generation = answer.object.get("generation").and_then(Value::as_u64)?;
        let now = context.directory().and_then(|directory| directory.node(&id)).ok().flatten();
        let mut held = Held {
            id,
            token,
            taken: now.filter(|node| node.generation == generation && node.claim().is_some()).map(Box::new),
            generation,
            pace: Duration::MAX,
            due: Instant::now(),
            by: None,
            has_receipt,
            asleep: false,
            in_use: 0,
        };
        held.last(remaining(&answer.object)?);
        Some(held)
    }

    /// It is renewed in time to last for `length` each time.
    fn last(&mut self, length: Duration) {
        self.pace = (length / 3).max(Duration::from_millis(1));
        self.due = Instant::now() + self.pace;
    }
}

impl Lost {
    /// For people and for programs.
    fn told(&self) -> (String, Value) {
        let (id, generation, message) = (self.id.as_str(), self.generation, self.refusal.message());
        let line = format!(
            "LOST {} generation={generation} — {}; stop working on it",
            harmless(id),
            harmless(&message)
        );
        let code = self.refusal.code().name();
        (line, json!({"id": id, "generation": generation, "code": code, "message": message}))
    }
}
