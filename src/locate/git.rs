//! The git repository around a folder, by its files.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::config::Settings;
use super::{Why, present, stat};
use crate::error::{Code, Error, Result};

/// Git reads no larger `.git` file either.
const MAX_LINK_BYTES: u64 = 1 << 20;

/// A repository as seen from a folder.
#[derive(Debug)]
pub(super) struct Repository {
    /// `MainWorktree`, `BareRepository` or `GitFolder`; it follows from the common git folder alone.
    pub(super) why: Why,
    /// The folder that the claim directory stands in.
    pub(super) home: PathBuf,
    /// The root of the worktree that the folder is in.
    pub(super) worktree: Option<PathBuf>,
    /// Are names that differ in case only one?
    pub(super) ignore_case: bool,
    /// The folder whose `.git` was found; none from inside a git folder.
    top: Option<PathBuf>,
}

impl Repository {
    /// The highest folder where a second claim directory would be in doubt with this one.
    pub(super) fn limit(&self) -> Option<&Path> {
        self.worktree.as_deref().or(self.top.as_deref())
    }
}

/// A git folder and the one it shares with the repository's other worktrees.
struct GitFolder {
    common: PathBuf,
    /// It belongs to a linked worktree.
    linked: bool,
}

/// Walks up from `cwd`, which is free of symbolic links, to the repository it is in.
pub(super) fn discover(cwd: &Path) -> Result<Option<Repository>> {
    for folder in cwd.ancestors() {
        if let Some(git) = below(folder)? {
            return repository(cwd, git, Some(folder)).map(Some);
        }
        if let Some(git) = git_folder(folder)? {
            return repository(cwd, git, None).map(Some);
        }
    }
    Ok(None)
}

fn repository(cwd: &Path, git: GitFolder, top: Option<&Path>) -> Result<Repository> {
    let settings = Settings::read(&git.common)?;
    let ignore_case = settings.ignore_case;
    let (home, why) = place(&git.common, settings)?;
    let worktree = top.and_then(|top| match &why {
        _ if git.linked => Some(top),
        Why::MainWorktree { root } => cwd.starts_with(root).then_some(root),
        Why::GitFolder { .. } => Some(top),
        _ => None,
    });
    let worktree = worktree.map(Path::to_path_buf);
    Ok(Repository { why, home, worktree, ignore_case, top: top.map(Path::to_path_buf) })
}

/// What the common git folder says about the place: the folder for it, and why. All worktrees must agree, so
/// nothing else may be asked.
fn place(common: &Path, settings: Settings) -> Result<(PathBuf, Why)> {
    let common = common.to_path_buf();
    if settings.bare == Some(true) {
        return Ok((common.clone(), Why::BareRepository { common }));
    }
    if let Some(worktree) = settings.worktree {
        return match fs::canonicalize(common.join(&worktree)) {
            Ok(root) => Ok((root.clone(), Why::MainWorktree { root })),
            Err(error) => Err(no_store(format!(
                "the git folder {} names {} as its main worktree (core.worktree): {error}",
                common.display(),
                worktree.display()
            ))),
        };
    }
    match common.parent() {
        Some(root) if common.file_name() == Some(OsStr::new(".git")) => {
            Ok((root.to_path_buf(), Why::MainWorktree { root: root.to_path_buf() }))
        }
        _ => Ok((common.clone(), Why::GitFolder { common })),
    }
}

/// The git folder that `.git` in `folder` is or points to. A `.git` folder that is none is passed over, as
/// git does; anything else that leads nowhere is an error, for what lies further up is another repository.
fn below(folder: &Path) -> Result<Option<GitFolder>> {
    let dot = folder.join(".git");
    let Some(entry) = present(&dot, fs::symlink_metadata(&dot))? else { return Ok(None) };
    if entry.is_dir() {
        return git_folder(&dot);
    }
    let broken = |why: &str| Err(no_store(format!("{} leads to no git repository: {why}", dot.display())));
    let Some(target) = stat(&dot)? else { return broken("it is a symbolic link to nothing") };
    let git = if target.is_dir() {
        dot.clone()
    } else if target.is_file() && target.len() <= MAX_LINK_BYTES {
        let text = fs::read(&dot).map_err(|error| Error::io("read", &dot, error))?;
        match text.strip_prefix(b"gitdir: ").map(trimmed) {
            Some(path) if !path.is_empty() => folder.join(OsStr::from_bytes(path)),
            _ => return broken("it does not say `gitdir: …`"),
        }
    } else {
        return broken("it is neither a folder nor a small file");
    };
    let git = match fs::canonicalize(&git) {
        Ok(git) => git,
        Err(error) => return broken(&format!("{}: {error}", git.display())),
    };
    match git_folder(&git)? {
        Some(git) => Ok(Some(git)),
        None => broken(&format!("{} is not a git folder", git.display())),
    }
}

/// Takes `folder` for a git folder by the signs that git goes by. `folder` is free of symbolic links.
fn git_folder(folder: &Path) -> Result<Option<GitFolder>> {
    let head = folder.join("HEAD");
    // Not followed: on an unborn branch an old-style HEAD is a link to nothing.
    if present(&head, fs::symlink_metadata(&head))?.is_none() {
        return Ok(None);
    }
    let file = folder.join("commondir");
    let (common, linked) = match present(&file, fs::read(&file))? {
        None => (folder.to_path_buf(), false),
        Some(text) => {
            let common = folder.join(OsStr::from_bytes(trimmed(&text)));
            match present(&common, fs::canonicalize(&common))? {
                None => return Ok(None),
                Some(common) => (common, true),
            }
        }
    };
    for part in ["objects", "refs"] {
        if !stat(&common.join(part))?.is_some_and(|it| it.is_dir()) {
            return Ok(None);
        }
    }
    Ok(Some(GitFolder { common, linked }))
}

fn trimmed(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
    &text[..end]
}

/// The repository can't be made sense of. Nothing else may be taken instead.
pub(super) fn no_store(message: String) -> Error {
    Error::new(Code::NoStore, message).hint(
        "mend the repository (`git worktree repair` in the main worktree mends links of moved worktrees), or name a claim directory with --dir or CLAIMS_DIR",
    )
}
