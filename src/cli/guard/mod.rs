//! What is done on others' paths, caught where it does harm: in an agent's hooks and in git's.
//!
//! ```text
//! call (an agent's hook) -> shell (what a line writes) -+
//! git  (what is committed, pushed)                     -+-> judge (whose is it?)
//! ```
//!
//! A guard refuses only what it is sure of. It fails open: what it can't read, understand or decide in time is allowed,
//! with a note. Who must be sure asks `claim check --path`.

pub(super) mod call;
pub(super) mod git;
pub(super) mod judge;
mod shell;

use std::env;

/// What becomes of what is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is refused.
    Refuse,
    /// It is allowed, and told.
    Warn,
    /// It is not looked for.
    Off,
}

impl Mode {
    /// As `CLAIM_GUARD` says, with a note if that can't be understood.
    pub(super) fn wanted() -> (Mode, Option<String>) {
        let text = env::var_os("CLAIM_GUARD").unwrap_or_default();
        match text.to_str() {
            Some("") => (Mode::Refuse, None),
            Some("warn") => (Mode::Warn, None),
            Some("off") => (Mode::Off, None),
            _ => {
                let shown = super::text::harmless(&text.to_string_lossy()).into_owned();
                let note =
                    format!("claim guard: CLAIM_GUARD is {shown:?}, neither warn nor off; taken for warn");
                (Mode::Warn, Some(note))
            }
        }
    }
}
