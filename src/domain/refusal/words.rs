//! Refusals in words: what was read, and the legal next step.

use super::{Reason, Refusal, Stale};
use crate::domain::fate::Became;
use crate::domain::record::{Ending, Lack, Need};
use crate::error::Code;
use crate::time::{human, rfc3339_seconds};

impl Refusal {
    /// What was read, in one clause. Names in it are as recorded; who prints them makes them harmless.
    pub fn message(&self) -> String {
        let generation = self.generation;
        match &self.reason {
            Reason::Held(holder) => {
                format!("already held by {} (generation {generation}, {})", holder.owner, holder.until())
            }
            Reason::Ended { ending: Ending::Done, by, .. } => {
                format!("already done by {by} (generation {generation})")
            }
            Reason::Ended { ending, by, reason } => {
                let why = reason.as_deref().map(|r| format!(": {r}")).unwrap_or_default();
                format!("{} (generation {generation}){why}", ending.by(by))
            }
            Reason::Blocked { reason, by, until_ms: None } => format!("blocked by {by}: {reason}"),
            Reason::Blocked { reason, by, until_ms: Some(until) } => {
                format!("blocked by {by} until {}: {reason}", rfc3339_seconds(*until))
            }
            Reason::StaleVersion { seen } => {
                format!("version {seen} was seen, and it is at version {} now", self.version)
            }
            Reason::Stale(stale) => stale.message(generation),
            Reason::OtherResult => {
                format!("done already with this token (generation {generation}), and with another result")
            }
            Reason::OtherInput => "this id stands for something else already, with another input".to_owned(),
            Reason::OtherWork => "the work key stands for this one, with another input".to_owned(),
            Reason::Waits(need) => need.message(),
            Reason::NotYet(ms) => format!("not to be taken for another {}", human(*ms)),
            Reason::Spent(attempts) => format!("its attempts are used up: {attempts} were started"),
            Reason::Requeued(times) => format!("it was requeued {times} times, and that is the most"),
            Reason::NotInState { wanted, state } => format!("it is not {wanted}: it is {state}"),
            Reason::NotEnded(state) => format!("it has not ended: it is {state}"),
            Reason::Tombstoned => {
                "it ended long ago and what it kept was pruned, so it can't run again".to_owned()
            }
            Reason::NoTask => "it is a bare key, and no task".to_owned(),
            Reason::Unfit(why) => why.clone(),
            Reason::NotDone(state) => format!("there is nothing to review: it is {state}"),
            Reason::NoReviewDue => "it doesn't ask for a review".to_owned(),
            Reason::Reviewed { by, accepted } => {
                format!("already {} by {by}", if *accepted { "accepted" } else { "rejected" })
            }
            Reason::SelfReview { by } => format!("{by} did the work, and can't review it"),
            Reason::OtherRequest { recorded, shown } => format!(
                "the receipt's key stands for another request (fingerprint {}, and this one is {})",
                recorded.hex(),
                shown.hex()
            ),
            Reason::AlreadyRun { generation, became } => {
                let became = match became {
                    Became::Held(holder) => format!("and its claim is live: it {}", holder.until()),
                    Became::Over => "and its claim is over".to_owned(),
                    Became::Ended(ending, _) => format!("and ended it as {}", ending.name()),
                    Became::Gone(state) => format!("and its claim is gone: it is {state} now"),
                };
                format!("this request has taken it before (generation {generation}), {became}")
            }
            Reason::PathClash(clash) => clash.message(),
            Reason::PoolFull(full) => full.message(),
            Reason::QuotaUsed(used) => used.message(),
            Reason::NoPool(pool) => format!("there is no pool {pool}"),
            Reason::NoQuota(quota) => format!("there is no quota {quota}"),
            Reason::NotFound => "there is no such node".to_owned(),
            Reason::NotSubmitted => "a task can wait only for one that has been added before".to_owned(),
            Reason::TimedOut(inner) => format!("waited in vain: {}", inner.message()),
        }
    }

    /// The legal next step. It never names a command that destroys something.
    pub fn next_step(&self) -> String {
        let id = shell_word(self.id.as_str());
        match &self.reason {
            Reason::Held(_) | Reason::TimedOut(_) => {
                format!("take another node, or wait with --wait; `claim why {id}` says more")
            }
            // Nothing new starts in a scope that was cancelled.
            Reason::Ended { .. } if self.version == 0 => "use another scope".to_owned(),
            Reason::Ended { .. } => format!("nothing is left to do on it; `claim show {id}` has the outcome"),
            Reason::Blocked { .. } => "take another node, or wait with --wait".to_owned(),
            Reason::StaleVersion { .. } => format!("read it again with `claim show {id}`, then decide anew"),
            Reason::Stale(Stale::TooLate) => "nothing was begun: try again, with a longer lease".to_owned(),
            Reason::Stale(Stale::CalledOff(_)) => {
                "stop working on it: nothing goes on in its scope".to_owned()
            }
            Reason::Stale(Stale::NotHeld(state)) if *state != "ready" => {
                format!("stop working on it; `claim show {id}` says what became of it")
            }
            Reason::Stale(_) => {
                format!("stop working on it, or `claim acquire {id}` anew and start from what is there")
            }
            Reason::OtherResult => format!("the first result stands; `claim show {id}` has it"),
            Reason::OtherInput => format!("use another id; `claim show {id}` says what this one stands for"),
            Reason::OtherWork => format!("use another key; `claim show {id}` says what this one stands for"),
            Reason::Waits(need) if need.passes() => "take another node, or wait with --wait".to_owned(),
            Reason::Waits(need) => need_step(need),
            Reason::NotYet(_) => "take another node, or wait with --wait".to_owned(),
            Reason::Spent(_) => format!("`claim show {id}` has what happened"),
            Reason::NotInState { state, .. } => match *state {
                "ready" => format!("it can be taken as it is, with `claim acquire {id}`"),
                "blocked" => format!("`claim unblock {id}` lets it be taken again"),
                _ => format!("nothing is to be done for it; `claim why {id}` says what it is at"),
            },
            Reason::Requeued(_) => {
                format!("`claim show {id}` has what happened; add it anew under another id")
            }
            Reason::Tombstoned => {
                format!("`claim show {id}` has what is left of it; use another id for the same anew")
            }
            Reason::NotEnded(_) => format!("wait for it with `claim result {id} --wait`"),
            Reason::NoTask => format!("`claim add {id}` makes it one"),
            Reason::Unfit(_) => "ask for something else".to_owned(),
            Reason::NotDone(_) => "review it once it is done".to_owned(),
            Reason::NoReviewDue | Reason::Reviewed { .. } => {
                format!("nothing is left to say; `claim show {id}`")
            }
            Reason::SelfReview { .. } => "have somebody else review it, or say --allow-self".to_owned(),
            Reason::OtherRequest { .. } => {
                "retry with what was asked for the first time, or use a new key for a new request".to_owned()
            }
            Reason::AlreadyRun { .. } => {
                format!("for another run use a new receipt; `claim show {id}` has what came of this one")
            }
            Reason::PathClash(_) => {
                "work on other paths, or wait with --wait; `claim list --paths` shows what is reserved"
                    .to_owned()
            }
            Reason::PoolFull(full) => {
                let pool = shell_word(full.pool.as_str());
                format!("wait with --wait; `claim pool show {pool}` says who has the slots")
            }
            Reason::QuotaUsed(used) if used.is_hopeless() => {
                format!("ask for {} at most", used.rate.limit())
            }
            Reason::QuotaUsed(_) => "wait with --wait".to_owned(),
            Reason::NoPool(pool) => {
                format!("`claim pool set {} N` gives it N slots", shell_word(pool.as_str()))
            }
            Reason::NoQuota(quota) => {
                format!("`claim quota set {} 100/1h` makes one", shell_word(quota.as_str()))
            }
            Reason::NotSubmitted => format!("`claim add {id}` first"),
            Reason::NotFound => "`claim list` shows the nodes there are".to_owned(),
        }
    }
}

/// What to do about a dependency that no waiting helps.
fn need_step(need: &Need) -> String {
    let root = need.root();
    let on = shell_word(root.on.as_str());
    match &root.lacks {
        Lack::Unreadable { code: Code::FormatTooNew, .. } => {
            "use a newer claim; it was left as it is".to_owned()
        }
        Lack::Unreadable { .. } => {
            "it was left as it is; look at it, and `claim doctor` lists all such files".to_owned()
        }
        Lack::Ended(Ending::Failed) => {
            format!(
                "it comes only if {on} is tried again; `claim show {on}` says why it failed, `claim requeue {on}` \
                     has it tried"
            )
        }
        _ => format!("it can't be met any more; `claim show {on}` says why"),
    }
}

/// `text` as one word of a shell: an id must not become a command when somebody runs what a hint says.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if text.chars().all(plain) && !text.starts_with('-') {
        return text.to_owned();
    }
    let option = if text.starts_with('-') { "-- " } else { "" };
    format!("{option}'{}'", text.replace('\'', r"'\''"))
}

impl Stale {
    fn message(&self, generation: u64) -> String {
        match self {
            Stale::NoRecord => "the claim is not valid: there is no record of it".to_owned(),
            Stale::Replaced(holder) => format!(
                "the claim is not valid: {} holds it (generation {generation}, {})",
                holder.owner,
                holder.until()
            ),
            Stale::Over => format!("the claim is over: its lease has ended (generation {generation})"),
            Stale::NotHeld(state) => {
                format!("the claim is not valid: nobody holds it, it is {state} (generation {generation})")
            }
            Stale::CalledOff(why) => format!("the claim is not valid: {why} (generation {generation})"),
            Stale::TooLate => "the lease had ended before it could be published; given back".to_owned(),
        }
    }
}
