//! Files of others, edited without touching what is not ours.
//!
//! ```text
//! texts -> block (a marked block in a text) | script (in a shell's script) | settings (hooks in JSON) -> file (written whole)
//! ```
//!
//! Each edit is a pure function of the text that is there. Putting our part in and taking it out again gives the same
//! bytes as before.

mod block;
mod file;
mod script;
mod settings;
mod spans;
mod texts;

use std::path::{Path, PathBuf};
use std::process::Command;

use claimdir::{Error, Result};

use crate::cli::args::Target;
use file::Found;

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
    let remarks = match target {
        Target::Git => remarks(root, &hooks(root)?),
        _ => Vec::new(),
    };
    Ok((edits(target, root, wanted)?, remarks))
}

fn edits(target: Target, root: &Path, wanted: Wanted) -> Result<Vec<Planned>> {
    let one = |path: &str, edit: &dyn Fn(Option<&str>) -> Edited| {
        planned(root, root.join(path), edit).map(|planned| vec![planned])
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
            let folder = hooks(root)?;
            let base = folder.parent().unwrap_or(&folder).to_path_buf();
            let hook = |(name, block): (&str, &str)| hook(&base, &folder.join(name), block, wanted);
            texts::HOOKS.into_iter().map(hook).collect()
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

/// A hook of git. One that a shell runs is added to; another one is put aside, and ours goes on with it.
fn hook(base: &Path, path: &Path, block: &str, wanted: Wanted) -> Result<Planned> {
    let found = file::program(base, path)?;
    let opaque = found == Found::Opaque;
    let before = match found {
        Found::Text(text) => Some(text),
        Found::Nothing | Found::Opaque => None,
    };
    let edit = |text: Option<&str>| script::edit(text, block, wanted).map_err(|why| refused(path, why));
    let after = if opaque && wanted == Wanted::Gone { None } else { edit(before.as_deref())? };
    let (base, path) = (base.to_path_buf(), path.to_path_buf());
    let mut planned = Planned { base, path, before, after, executable: true, opaque, aside: Aside::None };
    if opaque || planned.before.is_some() {
        planned.chain(block, wanted)?;
    }
    Ok(planned)
}

/// What is to be known of the hooks in `folder`, which is where git looks for them from the worktree `root`.
fn remarks(root: &Path, folder: &Path) -> Vec<String> {
    let set = git(root, &["config", "--get", "core.hooksPath"]).unwrap_or_default();
    let common = git(root, &["rev-parse", "--git-common-dir"]).unwrap_or_default();
    let is_apart = !folder.starts_with(root) && !folder.starts_with(root.join(common));
    let mut remarks = Vec::new();
    if set.as_os_str().is_empty() {
        return remarks;
    }
    if is_apart {
        remarks.push("core.hooksPath names these hooks, and other repositories may use them, too; where no claims are used they do nothing".to_owned());
    } else if set.is_relative() && !set.starts_with("~") {
        remarks.push("core.hooksPath is relative, so each worktree has hooks of its own: `claim setup git` is for this one".to_owned());
    }
    if folder.ends_with(".husky/_") {
        remarks.push("husky writes that folder anew when it is installed; then say `claim setup git` again, or have .husky/pre-commit run `claim guard git pre-commit`".to_owned());
    }
    remarks
}

impl Planned {
    /// Has a hook that is there and is no shell's script run after ours, or puts it back.
    fn chain(&mut self, block: &str, wanted: Wanted) -> Result<()> {
        if !file::is_executable(&self.path) {
            return Err(refused(
                &self.path,
                "it is not executable, so git does not run it, and then it would",
            ));
        }
        let mut name = self.path.file_name().unwrap_or_default().to_os_string();
        name.push(script::ASIDE);
        let aside = self.path.with_file_name(name);
        let text = self.before.as_deref().unwrap_or_default();
        match wanted {
            // What was put aside and is gone can't be run any more.
            _ if script::is_chain(text) => match (file::program(&self.base, &aside)?, wanted) {
                (Found::Nothing, Wanted::There) => self.after = Some(script::own(block)),
                (_, Wanted::There) => self.after = Some(script::chain(block)),
                (Found::Nothing, Wanted::Gone) => self.after = None,
                (found, Wanted::Gone) => {
                    self.after = Some(if let Found::Text(text) = found { text } else { String::new() });
                    self.aside = Aside::Back(aside);
                }
            },
            Wanted::There if self.opaque || !script::is_shell(text) => {
                if file::is_another(&aside, &self.path) {
                    return Err(refused(&self.path, &format!("there is {} already", aside.display())));
                }
                self.after = Some(script::chain(block));
                self.aside = Aside::Put(aside);
            }
            _ => {}
        }
        Ok(())
    }

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

/// Where git looks for hooks, whatever worktree this is: by `core.hooksPath`, else in the common git folder.
fn hooks(root: &Path) -> Result<PathBuf> {
    let none = || Error::usage(format!("{} is in no git repository", root.display()));
    Ok(root.join(git(root, &["rev-parse", "--git-path", "hooks"]).ok_or_else(none)?))
}

/// The path that git answers with, if it does.
fn git(root: &Path, arguments: &[&str]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let path = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout).to_vec();
    output.status.success().then(|| PathBuf::from(std::ffi::OsString::from_vec(path)))
}
