//! Files of others, edited without touching what is not ours.
//!
//! ```text
//! texts -> block (a marked block in a text) | hooks, script (in a shell's script) | settings (hooks in JSON) -> file (written whole)
//! ```
//!
//! Each edit is a pure function of the text that is there. Putting our part in and taking it out again gives the same
//! bytes as before.

mod block;
mod file;
mod hooks;
mod script;
mod settings;
mod spans;
mod texts;

use std::path::{Path, PathBuf};

use claimdir::{Error, Result};

use crate::cli::args::Target;
use file::Found;
use hooks::Hooks;

/// A file, what is in it and what is to be in it; `None`: it is not there.
pub(super) struct Planned {
    /// Links below this folder are refused.
    base: PathBuf,
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// Is it a program?
    executable: bool,
    /// Is what is there no text? Then `before` does not have it.
    opaque: bool,
    aside: Aside,
}

/// What becomes of a hook that can't be added to.
enum Aside {
    /// There is none.
    None,
    /// It gets this name, too, before it is replaced.
    Put(PathBuf),
    /// It has this name, and comes back.
    Back(PathBuf),
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    There,
    Gone,
}

/// What an edit makes of a text.
type Edited = std::result::Result<Option<String>, &'static str>;

/// The edits for `target`, in the worktree whose root is `root`, and what is to be known of them.
pub(super) fn plan(target: Target, root: &Path, wanted: Wanted) -> Result<(Vec<Planned>, Vec<String>)> {
    let one = |path: &str, edit: &dyn Fn(Option<&str>) -> Edited| {
        planned(root, root.join(path), edit).map(|planned| (vec![planned], Vec::new()))
    };
    match target {
        Target::ClaudeCode => one(".claude/settings.json", &|text| settings::edit(text, wanted)),
        Target::Codex => one("AGENTS.md", &|text| block::edit(text, "", &texts::agents("codex"), wanted)),
        Target::Cursor => one(".cursor/rules/claim.mdc", &|text| {
            block::edit(text, texts::CURSOR_HEAD, &texts::agents("cursor"), wanted)
        }),
        Target::GithubActions => {
            one(".github/workflows/claim.yml", &|text| block::whole(text, texts::WORKFLOW, wanted))
        }
        Target::Git => {
            let hooks = Hooks::of(root)?;
            Ok((hooks.edits(wanted)?, hooks.remarks()))
        }
    }
}

fn planned(base: &Path, path: PathBuf, edit: &dyn Fn(Option<&str>) -> Edited) -> Result<Planned> {
    let before = file::read(base, &path)?;
    let after = edit(before.as_deref()).map_err(|why| refused(&path, why))?;
    Ok(Planned {
        base: base.to_path_buf(),
        path,
        before,
        after,
        executable: false,
        opaque: false,
        aside: Aside::None,
    })
}

impl Planned {
    /// Is the file as it is to be?
    pub(super) fn stands(&self) -> bool {
        self.before == self.after
    }

    /// Refuses a file that nobody is meant to write.
    pub(super) fn may_be_written(&self) -> Result<()> {
        match self.stands() || file::is_writable(&self.path) {
            true => Ok(()),
            false => Err(refused(&self.path, "it is read-only")),
        }
    }

    /// Writes the file.
    pub(super) fn write(&self) -> Result<()> {
        if self.stands() {
            return Ok(());
        }
        // What was read is what is replaced, as far as that can be seen.
        let is_same = match self.opaque {
            true => file::program(&self.base, &self.path)? == Found::Opaque,
            false => file::read(&self.base, &self.path)? == self.before,
        };
        if !is_same {
            return Err(refused(&self.path, "it was changed meanwhile; try again"));
        }
        match &self.aside {
            Aside::None => {}
            Aside::Put(aside) => file::link(&self.path, aside)?,
            Aside::Back(aside) => return file::rename(aside, &self.path),
        }
        match &self.after {
            Some(text) => file::write(&self.path, text, self.executable),
            None => {
                file::remove(&self.path)?;
                // The folder of hooks is git's.
                if !self.executable {
                    file::remove_empty(&self.base, &self.path);
                }
                Ok(())
            }
        }
    }
}

fn refused(path: &Path, why: &str) -> Error {
    Error::usage(format!("{} was left as it is: {why}", path.display()))
}
