//! What an agent must know of the claim directory as it is now. Nothing here writes.

use std::collections::BTreeMap;
use std::env;

use claimdir::domain::{Node, State as Recorded};
use claimdir::{Acquire, Detail, Directory, Name, Next, Refusal, Result, Roots, Token};
use serde_json::{Value, json};

use crate::cli::args::StateFilter;
use crate::cli::command::now;
use crate::cli::context::Context;

/// A claim that is mine.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) id: String,
    /// `None`: as long as its process lives.
    pub(crate) remaining_ms: Option<i64>,
}

/// The state, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) owner: String,
    /// Where the claims are.
    pub(crate) place: String,
    /// The claim in `CLAIM_ID` and `CLAIM_TOKEN`, if it is lost.
    pub(crate) lost: Option<Refusal>,
    /// The first to end first.
    pub(crate) held: Vec<Held>,
    /// The task that `next` would take, and its title.
    pub(crate) next: Option<(String, Option<String>)>,
    /// Boxes, and how many messages wait there for the owner.
    pub(crate) mail: Vec<(String, u64)>,
    /// Done nodes that a reviewer has yet to see, but for the owner's own.
    pub(crate) reviews: Vec<String>,
    /// How many nodes are in each state.
    pub(crate) counts: BTreeMap<&'static str, usize>,
    /// How many records can't be read.
    pub(crate) unreadable: usize,
}

impl State {
    /// `None`: no claim directory is used here. `session`: the agent's, where it says so itself.
    pub(crate) fn read(context: &Context, session: Option<&str>) -> Result<Option<State>> {
        let located = match context.located() {
            Ok(located) if located.exists => located,
            Ok(_) => return Ok(None),
            Err(error) if error.code() == claimdir::Code::NoStore => return Ok(None),
            Err(error) => return Err(error),
        };
        let directory = context.directory()?;
        let mut state = State {
            owner: context.owner_in(&directory, session)?.name,
            place: located.path.to_string_lossy().into_owned(),
            ..State::default()
        };
        state.lost = lost(context, &directory)?;
        state.survey(&directory)?;
        state.next = next(context, &directory, &state.owner)?;
        state.mail = mail(&directory, &state.owner)?;
        Ok(Some(state))
    }

    fn survey(&mut self, directory: &Directory) -> Result<()> {
        let owner = self.owner.as_str();
        let roots = Roots::default();
        let told = |node: Node| Some(Told::of(directory, &node, owner, &roots));
        let seen = directory.survey(None, Detail::Brief, told)?;
        self.unreadable = seen.unreadable.len();
        for told in seen.found {
            *self.counts.entry(told.state).or_default() += 1;
            self.held.extend(told.held);
            self.reviews.extend(told.review);
        }
        self.held.sort_by_key(|held| held.remaining_ms.unwrap_or(i64::MAX));
        Ok(())
    }

    /// For programs: nothing is shortened.
    pub(crate) fn json(&self) -> Value {
        let held = |held: &Held| json!({"id": held.id, "remaining_ms": held.remaining_ms});
        let next = self.next.as_ref().map(|(id, title)| json!({"id": id, "title": title}));
        let mail = |(name, waiting): &(String, u64)| json!({"box": name, "waiting": waiting});
        json!({
            "owner": self.owner,
            "lost": self.lost.as_ref().map(|lost| json!({"id": lost.id.as_str(), "message": lost.message()})),
            "held": self.held.iter().map(held).collect::<Vec<_>>(),
            "next": next,
            "mail": self.mail.iter().map(mail).collect::<Vec<_>>(),
            "reviews": self.reviews,
            "states": self.counts,
            "unreadable": self.unreadable,
        })
    }
}

/// What of one node counts.
struct Told {
    state: &'static str,
    held: Option<Held>,
    review: Option<String>,
}

impl Told {
    fn of(directory: &Directory, node: &Node, owner: &str, roots: &Roots) -> Told {
        let now = now(directory, node, roots);
        let is_mine = node.claim().is_some_and(|claim| claim.owner == owner);
        let held = (is_mine && now.state == StateFilter::Claimed)
            .then(|| Held { id: node.id.to_string(), remaining_ms: now.remaining_ms });
        let is_due = node.asks_for_review() && node.review.is_none();
        let review = match &node.state {
            Recorded::Done(outcome) if is_due && outcome.by != owner => Some(node.id.to_string()),
            _ => None,
        };
        Told { state: now.state.name(), held, review }
    }
}

/// Why the claim that this process was given is lost, if it is.
fn lost(context: &Context, directory: &Directory) -> Result<Option<Refusal>> {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(id), Some(token)) = (set("CLAIM_ID"), set("CLAIM_TOKEN")) else { return Ok(None) };
    Ok(directory.check(&context.id(&id)?, &Token::shown(token))?.err())
}

fn next(context: &Context, directory: &Directory, owner: &str) -> Result<Option<(String, Option<String>)>> {
    let mut request = Next::of(Acquire::by(owner));
    if let Ok(queue) = env::var("CLAIM_QUEUE")
        && !queue.is_empty()
    {
        request = request.queue(Name::new(queue)?);
    }
    if let Some(scope) = context.scope()? {
        request = request.scope(scope);
    }
    let task = directory.would_next(&request)?.ok().map(|acquired| acquired.node);
    Ok(task.map(|node| (node.id.to_string(), node.task.and_then(|task| task.title))))
}

/// The boxes that the owner reads, or that are named after it.
fn mail(directory: &Directory, owner: &str) -> Result<Vec<(String, u64)>> {
    let mut waiting = Vec::new();
    for found in directory.mailboxes()?.boxes {
        let cursor = found.readers.iter().find(|cursor| cursor.reader.as_str() == owner);
        let seen = match cursor {
            Some(cursor) => cursor.acknowledged,
            None if found.name.as_str() == owner => 0,
            None => continue,
        };
        let count = found.last.saturating_sub(seen.max(found.floor));
        if count > 0 {
            waiting.push((found.name.as_str().to_owned(), count));
        }
    }
    Ok(waiting)
}
