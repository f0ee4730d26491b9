//! Which claim directory a command works on, and in whose name.

use std::cell::OnceCell;
use std::env::{self, VarError};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use claimdir::locate::{self, Located, Owner, Places, Tree, Why};
use claimdir::store::files::Options;
use claimdir::{Code, Directory, Error, Name, NodeId, Rate, ReceiptKey, RepoPath, Resources, Result, Scope};

use super::args::{Global, Once, With};
use super::text::harmless;

/// What all commands share. Nothing is looked up before a command asks.
pub(crate) struct Context {
    pub(crate) global: Global,
    located: OnceCell<Located>,
    noted: OnceCell<String>,
    missing: OnceCell<String>,
    evaluated: OnceCell<()>,
}

impl Context {
    pub(crate) fn new(global: Global) -> Context {
        Context {
            global,
            located: OnceCell::new(),
            noted: OnceCell::new(),
            missing: OnceCell::new(),
            evaluated: OnceCell::new(),
        }
    }

    /// A shell evaluates what this command prints.
    pub(crate) fn evaluated(&self) {
        let _ = self.evaluated.set(());
    }

    pub(crate) fn is_evaluated(&self) -> bool {
        self.evaluated.get().is_some()
    }

    pub(crate) fn cwd() -> Result<PathBuf> {
        env::current_dir().map_err(|e| {
            Error::new(Code::NoStore, format!("the current folder can't be read: {e}"))
                .hint("cd somewhere else")
        })
    }

    /// Where the claim directory is.
    pub(crate) fn located(&self) -> Result<&Located> {
        self.locate_by(locate::locate)
    }

    /// Where `init` makes it.
    pub(crate) fn located_for_init(&self) -> Result<&Located> {
        self.locate_by(locate::locate_for_init)
    }

    fn locate_by(&self, locate: impl Fn(&Places<'_>) -> Result<Located>) -> Result<&Located> {
        if let Some(located) = self.located.get() {
            return Ok(located);
        }
        let variable = env::var_os("CLAIMS_DIR");
        let named = self.global.dir.as_deref().or(variable.as_deref().map(Path::new));
        let cwd = match Self::cwd() {
            // A folder that was removed is not asked where everything is named from the root.
            Err(_) if named.is_some_and(Path::is_absolute) => PathBuf::from("/"),
            cwd => cwd?,
        };
        let places =
            Places { argument: self.global.dir.as_deref(), variable: variable.as_deref(), cwd: &cwd };
        let located = locate(&places)?;
        Ok(self.located.get_or_init(|| located))
    }

    /// Where a directory is that another argument names.
    pub(crate) fn named(path: &Path, locate: impl Fn(&Places<'_>) -> Result<Located>) -> Result<Located> {
        locate(&Places { argument: Some(path), variable: None, cwd: &Self::cwd()? })
    }

    /// The directory, where it was found to be, for answers.
    pub(crate) fn dir(&self) -> Option<&PathBuf> {
        self.located.get().map(|located| &located.path)
    }

    /// Refuses to write `file` where only claims are kept: it would stand in a record's place.
    pub(crate) fn refuse_inside(&self, file: &Path) -> Result<()> {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let whole = |path: &Path| path.canonicalize().ok();
        let dir = self.located().ok().and_then(|located| whole(&located.path));
        match dir.zip(whole(folder)) {
            Some((dir, folder)) if folder.starts_with(&dir) => {
                let why = format!("{} is in the claim directory, where only claims are kept", file.display());
                Err(Error::usage(why).hint("name a file outside of it"))
            }
            _ => Ok(()),
        }
    }

    /// The name of the scope that ids are in, if one is named.
    pub(crate) fn scope_name(&self) -> Result<Option<Name>> {
        if let Some(name) = &self.global.scope {
            return Name::new(name.as_str()).map(Some);
        }
        match env::var("CLAIM_SCOPE") {
            Ok(name) if !name.is_empty() => Name::new(name).map(Some),
            Err(VarError::NotUnicode(_)) => {
                Err(Error::usage("the scope's name in CLAIM_SCOPE is not valid UTF-8"))
            }
            _ => Ok(None),
        }
    }

    /// That scope.
    pub(crate) fn scope(&self) -> Result<Option<Scope>> {
        Ok(self.scope_name()?.as_ref().map(Scope::named))
    }

    /// An argument as an id, in that scope unless it names one.
    pub(crate) fn id(&self, text: &str) -> Result<NodeId> {
        match self.scope()? {
            Some(scope) => scope.id(text),
            None => NodeId::new(text),
        }
    }

    /// The tree around the current folder, by which all worktrees of the repository know paths.
    pub(crate) fn tree(&self) -> Result<Tree> {
        Tree::around(self.located()?, &Self::cwd()?)
    }

    /// Paths as arguments, each relative to the current folder, as all worktrees of the repository know them.
    pub(crate) fn paths(&self, texts: &[OsString]) -> Result<Vec<RepoPath>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let tree = self.tree()?;
        texts.iter().map(|text| tree.path(text)).collect()
    }

    /// What a claim takes along, from arguments.
    pub(crate) fn resources(&self, with: &With) -> Result<Resources> {
        let mut resources = Resources::default();
        self.paths(&with.paths)?.into_iter().for_each(|path| resources.add_path(path));
        for pool in &with.pools {
            resources.add_pool(Name::new(pool.as_str())?);
        }
        for text in &with.quotas {
            let (name, amount) = text.rsplit_once('=').unwrap_or((text, "1"));
            let amount = amount.parse().ok().filter(|amount| (1..=Rate::MAX_LIMIT).contains(amount));
            let wrong = || Error::usage(format!("not an amount of a quota: {text:?}; write it like api=3"));
            resources.add_quota(Name::new(name)?, amount.ok_or_else(wrong)?);
        }
        Ok(resources)
    }

    /// Opens the claim directory.
    pub(crate) fn directory(&self) -> Result<Directory> {
        let located = self.located()?;
        if !located.exists && matches!(located.why, Why::Argument | Why::Variable) {
            let _ = self.missing.set(missing(&located.path, &located.why));
        }
        self.open(located)
    }

    /// The same for one request, which happens once if it has a receipt.
    pub(crate) fn directory_once(&self, once: &Once) -> Result<Directory> {
        with_receipt(self.directory()?, once)
    }

    pub(crate) fn open(&self, located: &Located) -> Result<Directory> {
        #[cfg(feature = "etcd")]
        if let Some(address) = &located.address {
            let address = address.clone().or_password(env::var("CLAIM_ETCD_PASSWORD").ok());
            return Directory::open_etcd(&address, self.etcd_options()?);
        }
        if self.global.max_skew.is_some() {
            return Err(Error::usage(
                "--max-skew is for claims on etcd: a folder is for one machine, which has one clock",
            ));
        }
        Directory::open_with(&located.path, self.options())
    }

    /// How it is opened.
    pub(crate) fn options(&self) -> Options {
        Options { sync: !self.global.no_sync, allow_shared: self.global.allow_shared_fs }
    }

    #[cfg(feature = "etcd")]
    fn etcd_options(&self) -> Result<claimdir::store::etcd::Options> {
        let mut options = claimdir::store::etcd::Options::default();
        let variable = env::var("CLAIM_MAX_SKEW").ok().filter(|text| !text.is_empty());
        if let Some(max_skew) = self.global.max_skew {
            options.max_skew = max_skew;
        } else if let Some(text) = variable {
            options.max_skew = claimdir::time::parse_duration(&text)?;
        }
        Ok(options)
    }

    /// What names the directory for a child's environment. It may hold a password, and is not to be shown.
    pub(crate) fn dir_for_child(&self) -> PathBuf {
        let Some(located) = self.located.get() else { return PathBuf::new() };
        #[cfg(feature = "etcd")]
        if let Some(address) = &located.address {
            return PathBuf::from(address.reveal());
        }
        located.path.clone()
    }

    /// What names the directory in lines for a shell, where a password has no place. `None`: the shell knows it.
    pub(crate) fn dir_for_shell(&self) -> Option<String> {
        let located = self.located.get()?;
        #[cfg(feature = "etcd")]
        if let Some(address) = &located.address {
            let is_known = located.why == locate::Why::Variable;
            return (!is_known).then(|| address.without_password().to_owned());
        }
        Some(located.path.to_string_lossy().into_owned())
    }

    /// Opens the claim directory to write to it; that it will be made is noted.
    pub(crate) fn directory_to_write(&self) -> Result<Directory> {
        let located = self.located()?;
        if !located.exists {
            let _ = self.noted.set(made(&located.path));
        }
        self.directory()
    }

    /// The same for one request.
    pub(crate) fn directory_to_write_once(&self, once: &Once) -> Result<Directory> {
        with_receipt(self.directory_to_write()?, once)
    }

    /// A note on the directory, for standard error: it is there now and was not before, or is not there though it was named.
    pub(crate) fn note(&self) -> Option<&str> {
        let is_there = self.dir().is_some_and(|dir| dir.is_dir());
        let note = if is_there { &self.noted } else { &self.missing };
        note.get().map(String::as_str)
    }

    /// Whose the claims are.
    pub(crate) fn owner(&self, directory: &Directory) -> Result<Owner> {
        self.owner_in(directory, None)
    }

    /// The same of an agent that names its session in another way than by a variable.
    pub(crate) fn owner_in(&self, directory: &Directory, session: Option<&str>) -> Result<Owner> {
        let cwd = Self::cwd().unwrap_or_else(|_| PathBuf::from("/"));
        let worktree = || locate::worktree(&cwd);
        let not_text = matches!(env::var("CLAIM_OWNER"), Err(VarError::NotUnicode(_)));
        if self.global.owner.is_none() && not_text {
            return Err(Error::usage("the owner's name in CLAIM_OWNER is not valid UTF-8"));
        }
        let told = |name: &str| session.filter(|_| name == "CLAUDE_CODE_SESSION_ID").map(str::to_owned);
        let variable =
            |name: &str| env::var(name).ok().filter(|value| !value.is_empty()).or_else(|| told(name));
        let host = directory.host().name();
        locate::owner(self.global.owner.as_deref(), &variable, &host, &worktree, &cwd)
    }
}

fn with_receipt(directory: Directory, once: &Once) -> Result<Directory> {
    match once.receipt.as_deref() {
        Some(key) => Ok(directory.with_receipt(ReceiptKey::new(key)?)),
        None => Ok(directory),
    }
}

fn missing(path: &Path, why: &Why) -> String {
    format!("there is no claim directory at {} yet ({why})", harmless(&path.to_string_lossy()))
}

fn made(path: &Path) -> String {
    format!("made the claim directory {}", harmless(&path.to_string_lossy()))
}
