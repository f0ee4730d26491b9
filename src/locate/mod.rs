//! Where the claim directory is, and in whose name this process claims.
//!
//! The order is: `--dir`, then `$CLAIMS_DIR`, then the git repository around the current folder, then the
//! nearest `.claims/` upwards. In a repository the place follows from its *common* git folder alone, so the
//! main worktree and every linked one come to the same answer whatever they are asked from.
//!
//! Git is never run: a few small files say all that is needed, and a call costs microseconds. What that leaves
//! out: `GIT_DIR` and `GIT_CEILING_DIRECTORIES` have no effect (hooks run inside the worktree, where the same
//! answer is found without them), and neither have settings of `core.bare` and `core.worktree` that come from
//! included files, from the user's own configuration or from `git -c`. Nothing here makes a file or a folder.

mod config;
mod explicit;
mod git;
mod overlap;
mod owner;
mod tree;

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Code, Error, Result};
use git::Repository;
pub use owner::{MAX_OWNER_BYTES, Owner, OwnerSource, owner};
pub use tree::Tree;

/// The claim directory's name wherever it is not named by hand.
pub const DIRECTORY: &str = ".claims";

/// What the search starts from.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The value of `--dir`.
    pub argument: Option<&'a Path>,
    /// The value of `$CLAIMS_DIR`; an empty one counts as unset.
    pub variable: Option<&'a OsStr>,
    /// The current folder.
    pub cwd: &'a Path,
}

/// How the directory was found; its `Display` is a phrase for `claim where`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// `--dir` names it.
    Argument,
    /// `$CLAIMS_DIR` names it.
    Variable,
    /// It stands at the root of the main worktree of the repository around the current folder.
    MainWorktree {
        /// That root.
        root: PathBuf,
    },
    /// The repository is bare, so it stands inside the common git folder.
    BareRepository {
        /// That folder.
        common: PathBuf,
    },
    /// The git folder lies apart from its main worktree and does not say where that is
    /// (`git init --separate-git-dir`), so it stands inside the git folder, where every worktree finds it.
    GitFolder {
        /// That folder.
        common: PathBuf,
    },
    /// Outside git: it is the nearest `.claims/` upwards.
    Ancestor,
    /// Outside git and with no `.claims/` upwards: the current folder, for `claim init` only.
    CurrentFolder,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Argument => "named by --dir",
            Why::Variable => "named by CLAIMS_DIR",
            Why::MainWorktree { .. } => "in the main worktree of this git repository, for all its worktrees",
            Why::BareRepository { .. } => "inside this bare git repository, for all its worktrees",
            Why::GitFolder { .. } => "inside this repository's separate git folder, for all its worktrees",
            Why::Ancestor => "the nearest .claims from the current folder upwards",
            Why::CurrentFolder => "in the current folder, since no git repository and no .claims is above it",
        })
    }
}

/// A claim directory's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The directory: absolute, its parent free of symbolic links. Of one that is not on this machine, its address as
    /// it may be shown.
    pub path: PathBuf,
    /// Its address, if it is not on this machine.
    #[cfg(feature = "etcd")]
    pub address: Option<crate::store::etcd::Address>,
    /// How it was found.
    pub why: Why,
    /// Does it exist? If not, the first write makes it; its parent exists unless this is for `claim init`.
    pub exists: bool,
}

impl Located {
    fn folder(path: PathBuf, why: Why, exists: bool) -> Located {
        Located {
            path,
            why,
            exists,
            #[cfg(feature = "etcd")]
            address: None,
        }
    }

    /// Is it a folder on this machine?
    pub fn is_folder(&self) -> bool {
        #[cfg(feature = "etcd")]
        return self.address.is_none();
        #[cfg(not(feature = "etcd"))]
        true
    }
}

/// Finds the claim directory.
///
/// [`Code::NoStore`] where there is none or the repository can't be made sense of, [`Code::AmbiguousStore`]
/// where a second one stands between the current folder and its worktree's root. A wrong guess would let two
/// processes win the same node, so nothing is guessed.
pub fn locate(places: &Places<'_>) -> Result<Located> {
    if let Some(located) = explicit::locate(places, explicit::Parent::MustExist)? {
        return Ok(located);
    }
    let cwd = real(places.cwd)?;
    match around(&cwd)? {
        Some(located) => Ok(located),
        None => Err(Error::new(
            Code::NoStore,
            format!("no claim directory: {} is in no git repository and no .claims is above it", cwd.display()),
        )
        .hint("run `claim init` in the folder whose processes shall share one, or name one with --dir or CLAIMS_DIR")),
    }
}

/// The root of the worktree that `cwd` is in, if it is in one. Trouble with git counts as none.
pub fn worktree(cwd: &Path) -> Option<PathBuf> {
    let cwd = fs::canonicalize(cwd).ok()?;
    git::discover(&cwd).ok().flatten()?.worktree
}

/// Finds the place where `claim init` makes the directory: as [`locate`], but where that finds nothing it is
/// `.claims` in the current folder, and the parents of a named directory may be missing.
pub fn locate_for_init(places: &Places<'_>) -> Result<Located> {
    if let Some(located) = explicit::locate(places, explicit::Parent::MayBeMissing)? {
        return Ok(located);
    }
    let cwd = real(places.cwd)?;
    match around(&cwd)? {
        Some(located) => Ok(located),
        None => Ok(Located::folder(cwd.join(DIRECTORY), Why::CurrentFolder, false)),
    }
}

/// What the current folder alone says. `cwd` is free of symbolic links.
fn around(cwd: &Path) -> Result<Option<Located>> {
    match git::discover(cwd)? {
        Some(repository) => in_repository(cwd, repository).map(Some),
        None => nearest(cwd),
    }
}

fn in_repository(cwd: &Path, repository: Repository) -> Result<Located> {
    let path = repository.home.join(DIRECTORY);
    let found = directory(&path)?;
    if let Some(limit) = repository.limit() {
        refuse_second(cwd, limit, &path, found.as_ref())?;
    }
    let exists = found.is_some();
    Ok(Located::folder(path, repository.why, exists))
}

/// Refuses another `.claims/` from `cwd` up to `limit`. One inside the claim directory itself is a record's
/// folder.
fn refuse_second(cwd: &Path, limit: &Path, path: &Path, found: Option<&Metadata>) -> Result<()> {
    let folders = cwd.ancestors().take_while(|folder| folder.starts_with(limit));
    for folder in folders.skip_while(|folder| folder.starts_with(path)) {
        let other = folder.join(DIRECTORY);
        if other == path {
            continue;
        }
        let Some(second) = stat(&other)?.filter(Metadata::is_dir) else { continue };
        if found.is_some_and(|first| (first.dev(), first.ino()) == (second.dev(), second.ino())) {
            continue;
        }
        let state = if found.is_some() { "" } else { " (not made yet)" };
        return Err(Error::new(
            Code::AmbiguousStore,
            format!(
                "two claim directories may be meant: {}{state}, which all worktrees of this repository share, and {}",
                path.display(),
                other.display()
            ),
        )
        .hint("say which one with --dir or CLAIMS_DIR, the same for every process that shall share it"));
    }
    Ok(())
}

/// Outside git: the nearest `.claims/`.
fn nearest(cwd: &Path) -> Result<Option<Located>> {
    for folder in cwd.ancestors() {
        let path = folder.join(DIRECTORY);
        if directory(&path)?.is_some() {
            return Ok(Some(Located::folder(path, Why::Ancestor, true)));
        }
    }
    Ok(None)
}

fn real(cwd: &Path) -> Result<PathBuf> {
    fs::canonicalize(cwd).map_err(|error| {
        Error::new(Code::NoStore, format!("cannot tell where the folder {} is: {error}", cwd.display()))
            .hint("go to a folder that exists, or name a claim directory with --dir or CLAIMS_DIR")
    })
}

/// What stands at `path`, which is to be a claim directory: a directory or nothing.
fn directory(path: &Path) -> Result<Option<Metadata>> {
    let what = match stat(path)? {
        Some(metadata) if metadata.is_dir() => return Ok(Some(metadata)),
        Some(_) => "it is not a directory",
        None => match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => "it is a symbolic link that leads nowhere",
            // Another process has made it in this very moment.
            Ok(found) if found.is_dir() => return Ok(Some(found)),
            Ok(_) => "it is not a directory",
            Err(_) => return Ok(None),
        },
    };
    Err(Error::new(Code::NoStore, format!("{} can't be a claim directory: {what}", path.display()))
        .hint("name another one with --dir or CLAIMS_DIR"))
}

fn stat(path: &Path) -> Result<Option<Metadata>> {
    present(path, fs::metadata(path))
}

/// An answer of the file system about `path`, or `None` where nothing is there.
fn present<T>(path: &Path, answer: io::Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(Error::io("look at", path, error)),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
