//! A tool is a command: its arguments, run in a context of its own, and the answer that the command gives.

use std::env;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use claimdir::time::{parse_duration, parse_lease};
use claimdir::{Error, Result, Token};
use rmcp::model::{CallToolResult, ContentBlock, RequestId};
use serde_json::{Map, Value, json};

use super::look;
use super::session::{Ends, Held, Session};
use super::tools::{Action, Call, Claim, Finish, Mail, Next, Outcome, Renew};
use super::wire::named;
use crate::cli::args::{self, Lane, Manner, Once, Taking, Terms, With};
use crate::cli::command::{acquire, mail, settle};
use crate::cli::context::Context;
use crate::cli::report::{Answer, Report};
use crate::cli::text::harmless;

/// The longest wait: clients give up on an answer after a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(50);

/// How often a call that waits looks whether it was called off, or whether anybody is there still.
const SLICE: Duration = Duration::from_millis(40);

/// Answers a call. `None`: it was called off meanwhile, and has left nothing behind.
pub(super) fn answer(session: &Session, id: &RequestId, call: Result<Call>) -> Option<CallToolResult> {
    let context = session.context();
    let has_receipt = matches!(
        &call,
        Ok(Call::Claim(Claim { receipt: Some(_), .. }) | Call::Next(Next { receipt: Some(_), .. }))
    );
    let takes = matches!(&call, Ok(Call::Claim(_) | Call::Next(_)));
    let work = Work { session, id, context: &context };
    if takes && session.is_called_off(id) {
        session.done(id);
        return None;
    }
    let answer = call.and_then(|call| work.run(call));
    let mut answer = answer.unwrap_or_else(|error| Report::error(error).answer(&context));
    // Before what was just taken stands there: it may be a node that was lost before.
    session.look_after();
    let taken = if takes { Held::of(&answer, has_receipt, &context) } else { None };
    let Some(lost) = session.hand_over(id, taken) else {
        if let Some(give_back) = answer.untold.take().filter(|_| !has_receipt) {
            // Where that fails, its lease ends.
            let _ = give_back();
        }
        session.done(id);
        return None;
    };
    Some(told(answer, lost))
}

/// The client throws the answer away, if it has been given or not: what the call took, or will have taken, is given back.
pub(super) fn call_off(session: &Arc<Session>, id: &RequestId) {
    let Some(held) = session.call_off(id) else { return };
    let (there, asked) = (session.clone(), id.clone());
    // Where that fails, its lease ends.
    let back = named("claim-mcp-back", move || {
        if let Ok(directory) = there.context().directory() {
            let _ = directory.release(&held.id, &held.token, None);
        }
        there.done(&asked);
    });
    if back.is_err() {
        session.done(id);
    }
}

/// The answer in the protocol's words. A normal no is no error: it is what an agent has asked for, and acts on.
fn told(answer: Answer, lost: Vec<(String, Value)>) -> CallToolResult {
    let Answer { exit, object, lines, .. } = answer;
    let mut fields = Map::new();
    for (name, value) in object {
        let is_first = name == "ok";
        fields.insert(name, value);
        if is_first {
            fields.insert("exit".to_owned(), json!(exit));
        }
    }
    let (mut text, lost): (Vec<String>, Vec<Value>) = lost.into_iter().unzip();
    if !lost.is_empty() {
        fields.insert("lost_claims".to_owned(), Value::Array(lost));
    }
    text.extend(lines);
    // Some clients show an agent the text only.
    for name in ["input", "input_blob", "progress"] {
        let value = fields.get(name).filter(|value| !value.is_null());
        text.extend(value.map(|value| format!("{name}: {}", harmless(&value.to_string()))));
    }
    let mut told = CallToolResult::success(vec![ContentBlock::text(text.join("\n"))]);
    told.is_error = Some(!matches!(exit, 0 | 1 | 5));
    told.structured_content = Some(Value::Object(fields));
    told
}

/// One call at work.
struct Work<'a> {
    session: &'a Session,
    id: &'a RequestId,
    context: &'a Context,
}

impl Work<'_> {
    fn run(&self, call: Call) -> Result<Answer> {
        let report = match call {
            Call::Claim(call) => self.claim(&call),
            Call::Next(call) => self.next(&call),
            Call::Renew(call) => return self.renew(call),
            Call::Finish(call) => return self.finish(call),
            Call::Mail(call) => self.mail(call),
            Call::Look(call) => {
                let token = match &call.id {
                    Some(id) if call.token.is_none() => {
                        self.known(id)?.map(|token| token.reveal().to_owned())
                    }
                    _ => call.token.clone(),
                };
                look::run(self.session, self.context, call, token)
            }
        };
        report.map(|report| self.answered(report))
    }

    fn answered(&self, report: Report) -> Answer {
        report.suggest(self.context).answer(self.context)
    }

    fn claim(&self, call: &Claim) -> Result<Report> {
        let with = With { paths: paths(&call.paths), pools: call.pools.clone(), quotas: call.quotas.clone() };
        let terms = |wait, with| self.terms(&call.lease, wait, with);
        terms(None, With::default())?;
        self.waiting(&call.wait, |wait| {
            let with =
                With { paths: with.paths.clone(), pools: with.pools.clone(), quotas: with.quotas.clone() };
            let taking = Taking { terms: terms(wait, with)?, seen: None, force: None };
            let manner = self.manner(&call.receipt, false);
            acquire::run(args::Acquire { id: call.id.clone(), taking, manner }, self.context)
        })
    }

    fn next(&self, call: &Next) -> Result<Report> {
        if call.dry_run && call.wait.is_some() {
            return Err(Error::usage("dry_run does not wait"));
        }
        self.waiting(&call.wait, |wait| {
            let queue = call.queue.clone().unwrap_or_else(|| self.session.defaults.queue.clone());
            let lane = Lane { queue, projects: call.projects.clone() };
            let terms = self.terms(&call.lease, wait, With::default())?;
            acquire::next(
                args::Next { lane, terms, manner: self.manner(&call.receipt, call.dry_run) },
                self.context,
            )
        })
    }

    fn terms(&self, lease: &Option<String>, wait: Option<Duration>, with: With) -> Result<Terms> {
        let defaults = &self.session.defaults;
        let lease = lease.as_deref().map(parse_lease).transpose()?.unwrap_or(defaults.lease);
        Ok(Terms { lease, wait, engine: defaults.engine.clone(), with })
    }

    fn manner(&self, receipt: &Option<String>, dry_run: bool) -> Manner {
        // Who has the key may come back for the claim, to another server: to its request, this process would be another one.
        let is_bound = receipt.is_none() && !self.session.defaults.unbound;
        Manner {
            once: Once { receipt: receipt.clone() },
            while_pid: is_bound.then(std::process::id),
            until_exit: None,
            dry_run,
            export: false,
        }
    }

    /// Asks again and again until the wait is over or is called off: a wait can't be interrupted.
    fn waiting(
        &self,
        wait: &Option<String>,
        ask: impl Fn(Option<Duration>) -> Result<Report>,
    ) -> Result<Report> {
        let Some(wait) = duration("wait", wait)? else { return ask(None) };
        let (begun, wait) = (Instant::now(), wait.min(LONGEST_WAIT));
        loop {
            let left = wait.saturating_sub(begun.elapsed());
            let report = ask(Some(left.min(SLICE)))?;
            if !report.is_in_vain() || left <= SLICE || self.session.is_called_off(self.id) {
                return Ok(report);
            }
        }
    }

    fn renew(&self, call: Renew) -> Result<Answer> {
        let Renew { id, token, lease, progress, receipt } = call;
        let lease = lease.as_deref().map(parse_lease).transpose()?;
        self.holding(id, token, false, |held| {
            let progress = progress.as_ref().map(Value::to_string);
            settle::renew(args::Renew { held, once: Once { receipt }, lease, progress }, self.context)
        })
    }

    fn finish(&self, call: Finish) -> Result<Answer> {
        let Finish { id, outcome, token, result, reason, after, receipt } = call;
        let given = [("result", result.is_some()), ("reason", reason.is_some()), ("after", after.is_some())];
        let (name, takes): (_, &[&str]) = match outcome {
            Outcome::Complete => ("complete", &["result"]),
            Outcome::Retry => ("retry", &["reason", "after"]),
            Outcome::Reject => ("reject", &["reason"]),
            Outcome::Release => ("release", &[]),
            Outcome::Block => ("block", &["reason"]),
        };
        only(name, &given, takes)?;
        if outcome == Outcome::Block && reason.is_none() {
            return Err(Error::usage("block needs a reason"));
        }
        let after = duration("after", &after)?;
        let (once, context) = (Once { receipt }, self.context);
        self.holding(id, token, true, |held| match outcome {
            Outcome::Complete => {
                let result = result.as_ref().map(Value::to_string);
                settle::complete(args::Complete { held, once, result }, context)
            }
            Outcome::Retry => settle::retry(args::Retry { held, once, reason, after }, context),
            Outcome::Reject => settle::reject(args::Reject { held, once, reason }, context),
            Outcome::Release => settle::release(args::Release { held, once, block: None }, context),
            Outcome::Block => settle::release(args::Release { held, once, block: reason }, context),
        })
    }

    /// Does something with a claim; `settles`: a yes ends it.
    fn holding(
        &self,
        id: String,
        token: Option<String>,
        settles: bool,
        act: impl FnOnce(args::Held) -> Result<Report>,
    ) -> Result<Answer> {
        let token = match token {
            Some(token) => settle::shown(&token)?,
            None => self.token(&id)?,
        };
        self.session.in_use(&token);
        let report = act(args::Held { id, token: token.reveal().to_owned() });
        let answer = report.map(|report| self.answered(report));
        let ends = answer.as_ref().ok().and_then(|answer| Ends::of(answer, settles));
        self.session.out_of_use(&token, ends);
        answer
    }

    /// The token of a claim that the agent has not named.
    fn token(&self, id: &str) -> Result<Token> {
        self.known(id)?.ok_or_else(|| {
            Error::usage(format!("no token: {id} was not claimed here"))
                .hint("pass the token that claim or next answered with")
        })
    }

    /// The token that this server got, or that it was started with.
    fn known(&self, id: &str) -> Result<Option<Token>> {
        let id = self.context.id(id)?;
        if let Some(token) = self.session.token(&id) {
            return Ok(Some(token));
        }
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let given = set("CLAIM_ID").zip(set("CLAIM_TOKEN"));
        let is_it = |given: &str| self.context.id(given).is_ok_and(|given| given == id);
        Ok(given.filter(|(given, _)| is_it(given)).map(|(_, token)| Token::shown(token)))
    }

    fn mail(&self, call: Mail) -> Result<Report> {
        let Mail { action, of, payload, number, by, limit, wait, work_key, claim, receipt } = call;
        let payload = payload.filter(|payload| action == Action::Send || !payload.is_null());
        let given = [
            ("payload", payload.is_some()),
            ("number", number.is_some()),
            ("as", by.is_some()),
            ("limit", limit.is_some()),
            ("wait", wait.is_some()),
            ("work_key", work_key.is_some()),
            ("claim", claim.is_some()),
            ("receipt", receipt.is_some()),
        ];
        let (name, takes): (_, &[&str]) = match action {
            Action::Send => ("send", &["payload", "as", "work_key", "claim", "receipt"]),
            Action::Read => ("read", &["as", "limit", "wait", "receipt"]),
            Action::Ack => ("ack", &["number", "as", "receipt"]),
            Action::Peek => ("peek", &[]),
        };
        only(name, &given, takes)?;
        if action == Action::Peek {
            return mail::run(args::Mail::List(args::MailList { of }), self.context);
        }
        let of = of.ok_or_else(|| needs(name, "box"))?;
        let once = || Once { receipt: receipt.clone() };
        match action {
            Action::Read => {
                let limit = limit.unwrap_or(10);
                if limit == 0 {
                    return Err(Error::usage("limit: at least 1"));
                }
                self.waiting(&wait, |wait| {
                    let args = args::MailRead { of: of.clone(), once: once(), by: by.clone(), limit, wait };
                    mail::run(args::Mail::Read(args), self.context)
                })
            }
            Action::Ack => {
                let number = number.ok_or_else(|| needs(name, "number"))?;
                mail::run(args::Mail::Ack(args::MailAck { of, number, once: once(), by }), self.context)
            }
            Action::Send | Action::Peek => {
                let payload = payload.ok_or_else(|| needs(name, "payload"))?.to_string();
                let token = claim.as_deref().map(|id| self.token(id)).transpose()?;
                let token = token.map(|token| token.reveal().to_owned());
                let args = args::MailSend { to: of, payload, once: once(), by, work_key, claim, token };
                mail::run(args::Mail::Send(args), self.context)
            }
        }
    }
}

pub(super) fn duration(name: &str, text: &Option<String>) -> Result<Option<Duration>> {
    let read = |text: &str| parse_duration(text).map_err(|error| Error::usage(format!("{name}: {error}")));
    text.as_deref().map(read).transpose()
}

pub(super) fn paths(texts: &[String]) -> Vec<OsString> {
    texts.iter().map(OsString::from).collect()
}

/// Refuses arguments that do not go with what a tool is to do, rather than pass over them.
pub(super) fn only(what: &str, given: &[(&str, bool)], takes: &[&str]) -> Result<()> {
    match given.iter().find(|(name, is_given)| *is_given && !takes.contains(name)) {
        Some((name, _)) => Err(Error::usage(format!("{name} does not go with {what}"))),
        None => Ok(()),
    }
}

pub(super) fn needs(what: &str, name: &str) -> Error {
    Error::usage(format!("{what} needs `{name}`"))
}
