//! Paths as people give them, made relative to what all worktrees of a repository have in common.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Located, git, real};
use crate::domain::{RepoPath, invalid_path, outside, refuse_pattern, without_stars};
use crate::error::Result;

/// What paths are relative to: the root of the worktree around the current folder, so that the same file in two
/// worktrees is one path; outside git the folder that holds the claim directory, or the root where that is on another machine.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
    cwd: PathBuf,
    /// Are names that differ in case only one?
    ignore_case: bool,
}

impl Tree {
    /// The tree that `cwd`, the current folder, is in.
    pub fn around(located: &Located, cwd: &Path) -> Result<Tree> {
        let cwd = real(cwd)?;
        // Trouble with git must not stand in the way of a directory that was named.
        let repository = git::discover(&cwd).ok().flatten();
        let ignore_case = repository.as_ref().is_some_and(|repository| repository.ignore_case);
        let root = match (repository.and_then(|repository| repository.worktree), located.path.parent()) {
            (Some(worktree), _) => worktree,
            // On all machines alike.
            _ if !located.is_folder() => PathBuf::from("/"),
            (None, Some(folder)) => folder.to_path_buf(),
            (None, None) => located.path.clone(),
        };
        Ok(Tree { root, cwd, ignore_case })
    }

    /// The path that `text`, absolute or relative to the current folder, names in the tree. It need not exist,
    /// and symbolic links within the tree stand for themselves.
    ///
    /// A trailing `/**` means the folder. Other patterns are refused, unless a file has that very name.
    pub fn path(&self, text: &OsStr) -> Result<RepoPath> {
        let Some(text) = text.to_str() else {
            return Err(invalid_path(&format!("{text:?} is not valid UTF-8")));
        };
        if text.is_empty() {
            return Err(invalid_path("it is empty; the current folder is `.`"));
        }
        let full = self.resolve(Path::new(without_stars(text)));
        let Ok(path) = full.strip_prefix(&self.root) else { return Err(outside(text)) };
        let bytes = path.as_os_str().as_bytes();
        // Each part is of `text`, or of the current folder's name.
        let Ok(path) = std::str::from_utf8(bytes) else {
            return Err(invalid_path(&format!("{} is not valid UTF-8", full.display())));
        };
        let path = if path.is_empty() { "." } else { path };
        if fs::symlink_metadata(&full).is_err() {
            refuse_pattern(without_stars(text))?;
        }
        let path = RepoPath::literal(path)?;
        Ok(if self.ignore_case { path.folded() } else { path })
    }

    /// The file that `name`, absolute or relative to the current folder, names in the tree; `None` outside of it. Each
    /// character stands for itself. A name that is not valid UTF-8 is reserved by nobody, but a folder that it is in may be.
    pub fn file(&self, name: &OsStr) -> Option<RepoPath> {
        let full = self.resolve(Path::new(name));
        let path = full.strip_prefix(&self.root).ok()?.to_string_lossy();
        let path = RepoPath::literal(if path.is_empty() { "." } else { &path }).ok()?;
        Some(if self.ignore_case { path.folded() } else { path })
    }

    /// The folder that paths are relative to.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The whole path. Links are followed on the way to the tree only.
    fn resolve(&self, text: &Path) -> PathBuf {
        let mut at = self.cwd.clone();
        for component in text.components() {
            match component {
                Component::RootDir | Component::Prefix(_) => at = PathBuf::from("/"),
                Component::CurDir => {}
                Component::ParentDir => drop(at.pop()),
                Component::Normal(name) => {
                    at.push(name);
                    if !at.starts_with(&self.root) {
                        at = fs::canonicalize(&at).unwrap_or(at);
                    }
                }
            }
        }
        at
    }
}
