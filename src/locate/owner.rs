//! In whose name a process claims.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The longest owner's name, in bytes.
pub const MAX_OWNER_BYTES: usize = 256;

/// The variables that hold an agent's session id, in the order they are asked.
const SESSIONS: [&str; 2] = ["CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID"];

/// A claimant's name. It is for people to read: being the same owner grants nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The name, exactly as given.
    pub name: String,
    /// Where it comes from.
    pub source: OwnerSource,
}

/// Where an owner's name comes from; its `Display` is a phrase for `claim where`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerSource {
    /// `--owner`.
    Argument,
    /// `$CLAIM_OWNER`.
    Variable,
    /// An agent's session id.
    Session {
        /// The variable that holds it.
        variable: &'static str,
    },
    /// `user@host:worktree`, since nothing named an owner.
    Place,
}

impl fmt::Display for OwnerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OwnerSource::Argument => "named by --owner",
            OwnerSource::Variable => "named by CLAIM_OWNER",
            OwnerSource::Session { variable } => return write!(f, "the agent's session in {variable}"),
            OwnerSource::Place => "user, host and worktree, since nothing names an owner",
        })
    }
}

/// The owner's name: `--owner`, else `$CLAIM_OWNER`, else an agent's session id, else `user@host:worktree`
/// with the current folder's name outside a worktree. An empty variable counts as unset.
///
/// `worktree` finds the root of the worktree, and is asked only where nothing else names an owner.
///
/// An empty `--owner`, or any name of more than [`MAX_OWNER_BYTES`], is wrong usage.
pub fn owner(
    argument: Option<&str>,
    env: &dyn Fn(&str) -> Option<String>,
    host_name: &str,
    worktree: &dyn Fn() -> Option<PathBuf>,
    cwd: &Path,
) -> Result<Owner> {
    let set = |variable: &str| env(variable).filter(|value| !value.is_empty());
    let session = || {
        SESSIONS.into_iter().find_map(|variable| Some((set(variable)?, OwnerSource::Session { variable })))
    };
    let (name, source) = match argument {
        Some("") => return Err(Error::usage("--owner is empty; give it a name, or leave it out")),
        Some(name) => (name.to_owned(), OwnerSource::Argument),
        None => set("CLAIM_OWNER").map(|name| (name, OwnerSource::Variable)).or_else(session).unwrap_or_else(
            || {
                let user = set("USER").or_else(|| set("LOGNAME"));
                let user = user.unwrap_or_else(|| rustix::process::getuid().as_raw().to_string());
                let folder = worktree().unwrap_or_else(|| cwd.to_owned());
                let folder = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
                (format!("{user}@{host_name}:{folder}"), OwnerSource::Place)
            },
        ),
    };
    if name.len() > MAX_OWNER_BYTES {
        return Err(Error::usage(format!(
            "the owner's name ({source}) has {} bytes, and {MAX_OWNER_BYTES} are the most",
            name.len()
        ))
        .hint("give a shorter one with --owner or CLAIM_OWNER"));
    }
    Ok(Owner { name, source })
}
