//! The words: fewer than 2,048 bytes, the most important first, whatever is in the directory.

use claimdir::time::human;

use super::state::{Held, State};
use crate::cli::args::Role;
use crate::cli::text::{harmless, shell_word};

/// With the last line's end there are fewer than 2,048 bytes.
const MOST: usize = 2046;

/// The longest name that is told whole, in bytes.
const NAME: usize = 56;

/// How many of a kind are told by name.
const FEW: usize = 3;

/// What to tell. What is most important comes first: what must not go on, what is held, how to work, what is next.
pub(crate) fn text(state: &State, role: Role) -> String {
    let mut text = String::new();
    let header = format!(
        "claim: of all who reach for a node exactly one wins. All worktrees share {}. You are {}.",
        short(&state.place, NAME),
        short(&state.owner, NAME)
    );
    let held = held(state);
    let mut parts: Vec<String> = lost(state).into_iter().collect();
    parts.extend([header, held]);
    parts.extend((role == Role::Reviewer).then(|| reviews(state)));
    parts.extend((role == Role::Lead).then(|| counts(state)));
    parts.push(rules(role).to_owned());
    parts.extend(next(state).filter(|_| role == Role::Worker));
    parts.extend(mail(state));
    for part in parts {
        let left = MOST.saturating_sub(text.len() + 1);
        if left < NAME {
            break;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&cut(&part, left));
    }
    text
}

/// What to tell where the state is not known.
pub(crate) fn rules(role: Role) -> &'static str {
    match role {
        Role::Worker => WORKER,
        Role::Reviewer => REVIEWER,
        Role::Lead => LEAD,
    }
}

const WORKER: &str = "\
Work in this loop:
1. Take. A task: eval \"$(claim next --export)\". A node, with the files you will write: eval \"$(claim acquire ID --path FILE --lease 10m --export)\". That sets CLAIM_ID and CLAIM_TOKEN, which the commands below need: give them to each new shell.
2. Renew before two thirds of the lease are over: claim renew. `claim run ID -- CMD` does it for you.
3. Check just before a side effect, a commit or a push: claim check
4. Settle: claim complete --result JSON; or, undone, claim retry --reason WHY or claim release.
Exit codes: 0 yes. 1 somebody else's, or nothing to take: do other work, never that. 3 fenced, your claim is lost: stop at once, write nothing more. 4 refused, it contradicts what is recorded: do what the hint says.
Never edit or remove anything in .claims.";

const REVIEWER: &str = "\
Review what others did:
1. Find: claim list --state done
2. Look: claim show ID has who did it, claim result ID the result.
3. Decide, once: claim review ID --accept, or claim review ID --reject --note WHY, which gives it back for another attempt. What waits for it goes on once it is accepted. Your own work is not yours to review.
Exit codes: 0 yes. 1 not done yet, or no such node. 4 refused: it has been reviewed, asks for no review, or is your own work.
Never edit or remove anything in .claims.";

const LEAD: &str = "\
Say what there is to do, and see that it gets done:
- claim add ID --title T --input JSON --after OTHER --path FILE --review: the same again is safe.
- claim list --state ready|claimed|waiting|blocked|failed; claim watch is a live board.
- claim why ID: why it can or can't be taken now. claim log ID: what happened.
- claim reap: claims that are over; nobody has to wait for it. claim requeue ID runs a failed one again.
- claim --scope RUN add ...: one run's keys apart from another's; claim scope wait RUN, claim scope cancel RUN --reason WHY.
- claim pause QUEUE --reason WHY, claim resume QUEUE.
Exit codes: 0 yes. 1 no, or nothing there. 3 fenced: that claim is lost. 4 refused, it contradicts what is recorded: do what the hint says.
Never edit or remove anything in .claims.";

fn lost(state: &State) -> Option<String> {
    let lost = state.lost.as_ref()?;
    let why = cut(&harmless(&lost.message()), 120);
    Some(format!("STOP working on {}: {why}. Write nothing more for it.", short(lost.id.as_str(), NAME)))
}

fn held(state: &State) -> String {
    if state.held.is_empty() {
        return "You hold nothing.".to_owned();
    }
    let told = |held: &Held| {
        let left = held.remaining_ms.map_or("with its process".to_owned(), |ms| format!("in {}", human(ms)));
        format!("{} (ends {left})", short(&held.id, NAME))
    };
    let more = format!("claim list --state claimed --owner {}", shell_word(&short(&state.owner, NAME)));
    few("You hold", &state.held, told, &more)
}

fn reviews(state: &State) -> String {
    if state.reviews.is_empty() {
        return "Nothing waits for your review.".to_owned();
    }
    few("For you to review:", &state.reviews, |id| short(id, NAME), "claim list --state done")
}

fn counts(state: &State) -> String {
    let counts: Vec<String> = state.counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let bad = match state.unreadable {
        0 => String::new(),
        bad => format!("; {bad} can't be read: claim doctor"),
    };
    format!("Nodes: {}{bad}.", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") })
}

fn next(state: &State) -> Option<String> {
    let (id, title) = state.next.as_ref()?;
    let title = title.as_ref().map(|title| format!(", {}", short(title, NAME))).unwrap_or_default();
    Some(format!("Next to take: {}{title}.", short(id, NAME)))
}

fn mail(state: &State) -> Option<String> {
    if state.mail.is_empty() {
        return None;
    }
    let told = |(name, count): &(String, u64)| format!("{count} in {}", short(name, NAME));
    Some(few("Mail waits for you:", &state.mail, told, "claim mail list") + " Read it: claim mail read BOX")
}

/// The first few by name, and how to see the others.
fn few<T>(what: &str, all: &[T], told: impl Fn(&T) -> String, more: &str) -> String {
    let named: Vec<String> = all.iter().take(FEW).map(told).collect();
    let rest = match all.len().saturating_sub(FEW) {
        0 => String::new(),
        rest => format!(", and {rest} more: {more}"),
    };
    format!("{what} {}{rest}.", named.join(", "))
}

fn short(text: &str, most: usize) -> String {
    cut(&harmless(text), most)
}

/// The beginning of `text`, of `most` bytes at most.
fn cut(text: &str, most: usize) -> String {
    const CUT: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most.saturating_sub(CUT.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_leave_room_for_the_state() {
        for role in [Role::Worker, Role::Reviewer, Role::Lead] {
            assert!(rules(role).len() < 1100, "{}: {}", role.name(), rules(role).len());
        }
    }

    #[test]
    fn a_cut_text_has_no_broken_character() {
        for most in 4..12 {
            let cut = cut("äöüäöü字", most);
            assert!(cut.len() <= most && cut.ends_with('…') || most >= 15, "{cut}");
        }
        assert_eq!(cut("same", 4), "same");
    }
}
