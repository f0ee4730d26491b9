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

/// A file, what is in it and what is to be in it; `None`: it is not there.
pub(super) struct Planned {
    /// Links below this folder are refused.
    base: PathBuf,
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// Is it a program?
    executable: bool,
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

/// The edits for `target`, in the worktree whose root is `root`.
pub(super) fn plan(target: Target, root: &Path, wanted: Wanted) -> Result<Vec<Planned>> {
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
    Ok(Planned { base: base.to_path_buf(), path, before, after, executable: false, aside: Aside::None })
}

/// A hook of git. One that a shell runs is added to; another one is put aside, and ours goes on with it.
fn hook(base: &Path, path: &Path, block: &str, wanted: Wanted) -> Result<Planned> {
    let edit = |text: Option<&str>| script::edit(text, block, wanted);
    let plain = planned(base, path.to_path_buf(), &edit)?;
    let mut planned = Planned { executable: true, ..plain };
    let Some(text) = planned.before.clone() else { return Ok(planned) };
    if !file::is_executable(path) {
        return Err(refused(path, "it is not executable, so git does not run it, and then it would"));
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(script::ASIDE);
    let aside = path.with_file_name(name);
    match wanted {
        Wanted::There if script::is_chain(&text) => planned.after = Some(script::chain(block)),
        Wanted::There if !script::is_shell(&text) => {
            if file::is_another(&aside, path) {
                return Err(refused(path, &format!("there is {} already", aside.display())));
            }
            planned.after = Some(script::chain(block));
            planned.aside = Aside::Put(aside);
        }
        Wanted::Gone if script::is_chain(&text) => {
            planned.after = file::read(base, &aside)?;
            planned.aside = Aside::Back(aside);
        }
        _ => {}
    }
    Ok(planned)
}

impl Planned {
    /// Is the file as it is to be?
    pub(super) fn stands(&self) -> bool {
        self.before == self.after
    }

    /// Writes the file.
    pub(super) fn write(&self) -> Result<()> {
        if self.stands() {
            return Ok(());
        }
        // What was read is what is replaced, as far as that can be seen.
        if file::read(&self.base, &self.path)? != self.before {
            return Err(refused(&self.path, "it was changed meanwhile; try again"));
        }
        match &self.aside {
            Aside::None => {}
            Aside::Put(aside) => file::link(&self.path, aside)?,
            Aside::Back(aside) if self.after.is_some() => return file::rename(aside, &self.path),
            Aside::Back(_) => {}
        }
        match &self.after {
            Some(text) => file::write(&self.path, text, self.executable),
            None => file::remove(&self.path),
        }
    }
}

fn refused(path: &Path, why: &str) -> Error {
    Error::usage(format!("{} was left as it is: {why}", path.display()))
}

/// Where git looks for hooks, whatever worktree this is: by `core.hooksPath`, else in the common git folder.
fn hooks(root: &Path) -> Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let git = Command::new("git").args(["rev-parse", "--git-path", "hooks"]).current_dir(root).output();
    let output = git.map_err(|e| Error::usage(format!("git can't be run: {e}")))?;
    if !output.status.success() {
        return Err(Error::usage(format!("{} is in no git repository", root.display())));
    }
    let path = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout).to_vec();
    Ok(root.join(std::ffi::OsString::from_vec(path)))
}
