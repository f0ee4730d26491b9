//! The hooks of git: where they are, whose, and what becomes of those that are there.

use std::path::{Path, PathBuf};
use std::process::Command;

use claimdir::{Error, Result};

use super::file::{self, Found};
use super::{Aside, Planned, Wanted, refused, script, texts};

/// Where hooks are put.
pub(super) struct Hooks {
    root: PathBuf,
    folder: PathBuf,
    /// Husky has a folder of its own for git, which it writes anew when it is installed; those hooks run these ones.
    by_husky: bool,
}

impl Hooks {
    /// Of the worktree whose root is `root`: where `core.hooksPath` says, else in the common git folder.
    pub(super) fn of(root: &Path) -> Result<Hooks> {
        let none = || Error::usage(format!("{} is in no git repository", root.display()));
        let folder = root.join(git(root, &["rev-parse", "--git-path", "hooks"]).ok_or_else(none)?);
        let root = root.to_path_buf();
        Ok(match folder.parent().filter(|_| folder.ends_with(".husky/_")) {
            Some(above) => Hooks { root, folder: above.to_path_buf(), by_husky: true },
            None => Hooks { root, folder, by_husky: false },
        })
    }

    pub(super) fn edits(&self, wanted: Wanted) -> Result<Vec<Planned>> {
        let base = self.folder.parent().unwrap_or(&self.folder);
        let edit =
            |(name, block): (&str, &str)| hook(base, &self.folder.join(name), block, wanted, !self.by_husky);
        texts::HOOKS.into_iter().map(edit).collect()
    }

    /// What is to be known of them: whose they are, where they are not the repository's.
    pub(super) fn remarks(&self) -> Vec<String> {
        let set = git(&self.root, &["config", "--get", "core.hooksPath"]).unwrap_or_default();
        let common = git(&self.root, &["rev-parse", "--git-common-dir"]).unwrap_or_default();
        let is_in = |folder: &Path| self.folder.starts_with(folder);
        let remark = if set.as_os_str().is_empty() {
            None
        } else if self.by_husky {
            Some("husky runs these hooks: commit them, and each worktree has them")
        } else if !is_in(&self.root) && !is_in(&self.root.join(common)) {
            Some(
                "core.hooksPath names these hooks, and other repositories may use them, too; where no claims are used they do nothing",
            )
        } else if set.is_relative() && !set.starts_with("~") {
            Some(
                "core.hooksPath is relative, so each worktree has hooks of its own: `claim setup git` is for this one",
            )
        } else {
            None
        };
        remark.into_iter().map(str::to_owned).collect()
    }
}

/// A hook of git. One that a shell runs is added to; another one is put aside, and ours goes on with it. What
/// is not run `by_git` needs no first line and no permission, since a shell is told to run it.
fn hook(base: &Path, path: &Path, block: &str, wanted: Wanted, by_git: bool) -> Result<Planned> {
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
    match (by_git, opaque, &planned.before) {
        (true, false, None) => {}
        (true, ..) => planned.chain(block, wanted)?,
        (false, true, _) => return Err(refused(&planned.path, "it is a link or no text")),
        (false, false, _) => {}
    }
    Ok(planned)
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
}

/// The path that git answers with, if it does.
fn git(root: &Path, arguments: &[&str]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let path = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout).to_vec();
    output.status.success().then(|| PathBuf::from(std::ffi::OsString::from_vec(path)))
}
