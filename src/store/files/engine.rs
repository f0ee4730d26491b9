//! The engine's calls, and what they share.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{Disk, Files, Irregular, intent, layout, names, watch};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::store::{Finding, Gravity, Key, MAX_CELL_BYTES, Prefix, Replaced, Store, Watch};

/// A claim directory's files as a store.
pub struct FileStore<F> {
    pub(super) files: F,
    pub(super) host: Arc<dyn Host>,
    pub(super) sync: bool,
    /// Is the layout known to be whole?
    pub(super) whole: AtomicBool,
    path: PathBuf,
}

/// How to open a claim directory.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Does "done" mean that it survives a power cut? On unless said; off for tests and scratch directories.
    pub sync: bool,
    /// Open it although other machines may write it too, where a claim may have two winners.
    pub allow_shared: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { sync: true, allow_shared: false }
    }
}

impl FileStore<Disk> {
    /// Opens the claim directory at `path`. It need not be there: the first write makes it, in a folder that is.
    ///
    /// Refused are a newer format ([`Code::FormatTooNew`]) and, unless allowed, a file system that other
    /// machines may write ([`Code::SharedFileSystem`]): the swap needs one kernel.
    pub fn open(path: &Path, options: Options, host: Arc<dyn Host>) -> Result<FileStore<Disk>> {
        let disk = Disk::open(path)?;
        if let Some(kind) = disk.shared_kind()?.filter(|_| !options.allow_shared) {
            let message = format!("{} is on {kind}, where a claim may get two winners", path.display());
            return Err(Error::new(Code::SharedFileSystem, message)
                .hint("use a directory on a local disk, or take the risk with --allow-shared-fs"));
        }
        FileStore::over(disk, path, options.sync, host)
    }
}

impl<F: Files> FileStore<F> {
    /// The engine over any files, for tests.
    pub fn over(files: F, path: &Path, sync: bool, host: Arc<dyn Host>) -> Result<FileStore<F>> {
        let mut store = FileStore { files, host, sync, whole: AtomicBool::new(false), path: path.to_owned() };
        *store.whole.get_mut() = layout::read(&store)?.is_some();
        Ok(store)
    }

    fn path_of(key: &Key) -> String {
        match key {
            Key::Node(id) => names::node_path(id),
            Key::Internal(name) => format!("{}/{}", layout::STORE, names::internal_path(name)),
        }
    }

    /// The whole path, for people.
    pub(super) fn show(&self, path: &str) -> String {
        if path.is_empty() {
            self.path.display().to_string()
        } else {
            self.path.join(path).display().to_string()
        }
    }

    pub(super) fn error(&self, action: &str, path: &str, error: io::Error) -> Error {
        let whole = PathBuf::from(self.show(path));
        if let Some(irregular) = error.get_ref().and_then(|e| e.downcast_ref::<Irregular>()) {
            let message = format!("{} is {irregular}", whole.display());
            return Error::new(Code::RecordUnreadable, message)
                .hint("look at what it is and move it elsewhere yourself; nothing was followed or changed");
        }
        Error::io(action, &whole, error)
    }

    pub(super) fn read_path(&self, path: &str) -> Result<Option<Vec<u8>>> {
        self.files.read(path, MAX_CELL_BYTES).map_err(|e| self.error("read", path, e))
    }

    /// Links a staged file to its name. `false`: the name is taken.
    pub(super) fn publish_staged(&self, staged: &str, path: &str) -> Result<bool> {
        match self.in_folder(path, || self.files.link(staged, path)) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(self.error("publish", path, e)),
        }
    }

    /// Makes a name at `path`, and the folders above it if they are missing.
    fn in_folder(&self, path: &str, act: impl Fn() -> io::Result<()>) -> io::Result<()> {
        match act() {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                for (at, _) in path.match_indices('/') {
                    match self.files.make_folder(&path[..at]) {
                        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
                        _ => {}
                    }
                }
                act()
            }
            done => done,
        }
    }

    /// Puts the names of `path` and of every folder above it on disk: whoever made those folders may have been
    /// stopped before it could.
    pub(super) fn sync_names(&self, path: &str) -> Result<()> {
        #[cfg(feature = "testing")]
        if crate::testing::fault("names not synced") {
            return Ok(());
        }
        let mut folder = path;
        while self.sync && !folder.is_empty() {
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
            self.files.sync_folder(folder).map_err(|e| self.error("sync", folder, e))?;
        }
        Ok(())
    }
}

impl<F: Files> Store for FileStore<F> {
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.read_path(&Self::path_of(key))
    }

    fn make(&self, key: &Key) -> Result<bool> {
        let path = Self::path_of(key);
        let made = match self.in_folder(&path, || self.files.create(&path)) {
            // The claim directory itself is not there yet.
            Err(e) if e.kind() == ErrorKind::NotFound => {
                layout::make(self)?;
                self.in_folder(&path, || self.files.create(&path))
            }
            made => made,
        };
        #[cfg(feature = "testing")]
        if made.is_ok() {
            super::testing::made();
        }
        match made {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(self.error("make", &path, e)),
        }
    }

    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        self.swap(&Self::path_of(key), expected, new)
    }

    fn confirm(&self, key: &Key) -> Result<()> {
        let path = Self::path_of(key);
        if self.sync {
            self.files.sync_file(&path).map_err(|e| self.error("sync", &path, e))?;
        }
        self.sync_names(&path)
    }

    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        let path = Self::path_of(key);
        let staged = self.stage(bytes)?.staged();
        let published = self.publish_staged(&staged, &path);
        self.withdraw(&staged);
        let published = published?;
        self.sync_names(&path)?;
        Ok(published)
    }

    fn remove(&self, key: &Key) -> Result<bool> {
        let path = Self::path_of(key);
        match self.files.unlink(&path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(self.error("remove", &path, e)),
        }
    }

    fn hint(&self, key: &Key) -> Result<()> {
        let path = Self::path_of(key);
        match self.in_folder(&path, || self.files.create(&path)) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(self.error("make", &path, e)),
            _ => Ok(()),
        }
    }

    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        let below = match prefix {
            Prefix::Nodes => None,
            Prefix::Internal(name) => match names::internal_folder(name) {
                Some(folder) => Some(folder),
                None => return Ok(Vec::new()),
            },
        };
        let folder = below.as_ref().map_or(String::new(), |folder| format!("{}/{folder}", layout::STORE));
        let paths = self.files.walk(&folder).map_err(|e| self.error("list", &folder, e))?;
        let read_back = |path: &String| match &below {
            None => names::node_of(path).map(Key::Node),
            Some(folder) => names::internal_of(&format!("{folder}/{path}")).map(Key::Internal),
        };
        let mut keys: Vec<Key> = paths.iter().filter_map(read_back).collect();
        keys.retain(|key| after.is_none_or(|after| key.name() > after));
        keys.sort_unstable(); // encoding keeps no order
        keys.truncate(limit);
        Ok(keys)
    }

    fn watch(&self, key: &Key) -> Box<dyn Watch + '_> {
        self.watch_any(std::slice::from_ref(key))
    }

    fn watch_any(&self, keys: &[Key]) -> Box<dyn Watch + '_> {
        let files: Vec<PathBuf> = keys.iter().map(|key| self.path.join(Self::path_of(key))).collect();
        Box::new(watch::FileWatch::new(&files))
    }

    fn prepare(&self) -> Result<bool> {
        let missing = layout::read(self)?.is_none();
        if missing {
            layout::make(self)?;
        }
        Ok(missing)
    }

    fn place(&self, key: Option<&Key>) -> String {
        self.show(&key.map(Self::path_of).unwrap_or_default())
    }

    fn inspect(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let mut find = |gravity, path: &str, what: String| {
            findings.push(Finding { gravity, place: self.show(path), what });
        };
        match layout::read(self)? {
            Some(format) if format.machine != self.host.place().machine => {
                let what = format!(
                    "made on machine {:?}, and this is {:?}: one claim directory is for one machine",
                    format.machine,
                    self.host.place().machine
                );
                find(Gravity::Fault, layout::STORE, what);
            }
            _ => {}
        }
        let intents = match self.files.list(intent::FOLDER) {
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            listed => listed.map_err(|e| self.error("list", intent::FOLDER, e))?,
        };
        for name in intents {
            let path = format!("{}/{name}", intent::FOLDER);
            let what = "a replacement under way, or left over by a process that died; later writes remove it after a minute";
            find(Gravity::Leftover, &path, what.to_owned());
        }
        for path in self.files.walk("").map_err(|e| self.error("list", "", e))? {
            if names::node_of(&path).is_none() {
                find(Gravity::Fault, &path, "not a record's file; it stands in nobody's way".to_owned());
            }
        }
        Ok(findings)
    }
}
