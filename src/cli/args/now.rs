//! What comes after a command: the end of its help text.

/// Of the program as a whole.
pub(super) const FIRST: &str = "\
What now? To do a thing once: `claim run ID -- CMD`. To see who has what: `claim list`, `claim watch`, `claim why ID`.
An agent begins with `claim prime`; `claim setup claude-code` and `claim setup git` have it told, and guarded, by itself.
`claim help COMMAND` says all about one; `claim capabilities --json` has exit codes and variables, too.";

const TAKEN: &str = "\
What now? 0: it is yours. --export sets CLAIM_ID and CLAIM_TOKEN, which the next commands need: `claim renew` before two
thirds of the lease are over, `claim check` just before a side effect, and in the end `claim complete` or `claim release`.
1: somebody else's, or nothing to take: take another, or say --wait. 4: the hint says what is in the way.";

const SETTLED: &str = "\
What now? 0: the claim has ended; take the next one. 3: it was lost before, and this changed nothing: write nothing more for
it. 4: the hint says what is recorded instead.";

/// What to do after the command `name`, by its exit code where that matters.
pub(super) fn after(name: &str) -> Option<&'static str> {
    Some(match name {
        "acquire" | "next" => TAKEN,
        "complete" | "release" | "retry" | "reject" => SETTLED,
        "run" => {
            "\
What now? 75: not claimed, somebody else is at it or the hint says what is in the way; --wait waits. 76: the lease was lost and
the command stopped: `claim show ID` says who has it now. Anything else is the command's own."
        }
        "work" => {
            "\
What now? `claim watch` shows it at work. `claim list --state failed` has what no attempt helped, `claim log ID` why, and
`claim requeue ID` runs it again."
        }
        "check" => {
            "\
What now? 0: go on. 3: the claim is lost: stop at once and write nothing more for it. 4: the path is another's: work elsewhere."
        }
        "renew" => {
            "\
What now? 0: go on, and renew again before two thirds of the lease are over. 3: the claim is lost: stop at once and write
nothing more for it."
        }
        "add" => {
            "\
What now? `claim next` or `claim work` takes it by its turn, `claim acquire ID` by its name. `claim why ID` says what it waits for,
`claim result ID --wait` waits for its end. The same again is safe."
        }
        "review" => {
            "\
What now? Accepted, what waits for it can be taken. Rejected, it is to be done again. `claim list --state done` has what is left."
        }
        "result" => {
            "\
What now? 1: it has not ended; --wait waits, and `claim why ID` says how far it is. 4: it ended without a result; a failed one runs
again with `claim requeue ID`."
        }
        "list" => {
            "\
What now? `claim why ID` says why one can or can't be taken, `claim show ID` all about it, `claim log ID` what happened to it."
        }
        "why" => {
            "\
What now? Take it with `claim acquire ID`, or wait for it with `claim acquire ID --wait`. Held by a dead one, it is free when
its lease is over."
        }
        "guard" => {
            "\
What now? `claim setup claude-code` and `claim setup git` have the hooks ask. Refused: work on other paths, wait with
`claim acquire ID --path FILE --wait`, or ask the holder by `claim mail send`."
        }
        "prime" => {
            "\
What now? Do as it says, from the top. `claim setup claude-code` has it told at each session's start."
        }
        "setup" => {
            "\
What now? Commit what was written into the worktree; git's hooks need no commit. `claim setup TARGET --check`, for CI, ends with
1 where the files are not as they would be written."
        }
        _ => return None,
    })
}
