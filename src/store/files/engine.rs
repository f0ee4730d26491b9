//! The engine's calls, and what they share.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::listing::{Unlisted, Walk};
use super::{Disk, Entry, Files, Irregular, intent, layout, log, names, watch};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::id::NodeId;
use crate::store::{
    Along, Finding, Key, Logged, MAX_CELL_BYTES, Measured, Prefix, Replaced, Store, Watch, along,
    parts_by_listing,
};

/// How often a name is tried whose folder was removed by others. Each time takes one of their calls at just the
/// wrong moment.
const FOLDER_TRIES: usize = 100;

/// A claim directory's files as a store.
pub struct FileStore<F> {
    pub(super) files: F,
    pub(super) host: Arc<dyn Host>,
    pub(super) sync: bool,
    /// Is the layout known to be whole?
    pub(super) whole: AtomicBool,
    /// The folders of the last hints, which stay for the next ones: making a folder costs more than all else a hint
    /// does.
    pub(super) warm: Mutex<VecDeque<String>>,
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
        let mut store = FileStore {
            files,
            host,
            sync,
            whole: AtomicBool::new(false),
            warm: Mutex::default(),
            path: path.to_owned(),
        };
        *store.whole.get_mut() = layout::read(&store)?.is_some();
        Ok(store)
    }

    fn path_of(key: &Key) -> String {
        match key {
            Key::Node(id) => names::node_path(id),
            Key::Internal(name) => layout::path(&names::internal_path(name)),
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

    /// Makes an empty file. `false`: the name is taken.
    fn create(&self, path: &str) -> Result<bool> {
        self.made(path, || self.files.create(path))
    }

    /// Makes a name at `path` by `make`, and before it whatever is missing above. `false`: the name is taken.
    pub(super) fn made(&self, path: &str, mut make: impl FnMut() -> io::Result<()>) -> Result<bool> {
        let made = match self.in_folder(path, &mut make) {
            // The claim directory itself is not there yet.
            Err(e) if e.kind() == ErrorKind::NotFound => {
                layout::make(self)?;
                self.in_folder(path, &mut make)
            }
            made => made,
        };
        match made {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(self.error("make", path, e)),
        }
    }

    /// Makes a name at `path`, and the folders above it if they are missing. Whoever takes the last hint out of
    /// a folder removes it, also between its making and its use; so this is tried again.
    fn in_folder(&self, path: &str, mut act: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut done = act();
        for _ in 0..FOLDER_TRIES {
            let is_missing = matches!(&done, Err(e) if e.kind() == ErrorKind::NotFound);
            if !is_missing || !self.make_folders(above(path))? {
                break;
            }
            done = act();
        }
        done
    }

    /// Makes a folder and those above it, where they are missing and for as long as nobody removes them. `false`:
    /// no folder is needed, or the claim directory itself is not there.
    fn make_folders(&self, folder: &str) -> io::Result<bool> {
        let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]).filter(|end| *end > 0);
        let folders: Vec<&str> = ends.map(|end| &folder[..end]).collect();
        // The lowest that can be made first: mostly those above it are there.
        let mut first = folders.len();
        let mut is_there = false;
        while first > 0 && !is_there {
            first -= 1;
            is_there = self.make_one(folders[first])?;
        }
        for folder in folders.iter().skip(first + 1) {
            if !is_there || !self.make_one(folder)? {
                break;
            }
        }
        Ok(is_there)
    }

    /// `false`: what is above it is not there.
    fn make_one(&self, folder: &str) -> io::Result<bool> {
        match self.files.make_folder(folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e),
            _ => Ok(true),
        }
    }

    fn unlisted(&self, Unlisted { path, error, .. }: Unlisted) -> Error {
        self.error("list", &path, error)
    }

    /// Removes a name. `false`: it was not there.
    pub(super) fn remove_path(&self, path: &str) -> Result<bool> {
        match self.files.unlink(path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(self.error("remove", path, e)),
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
            folder = above(folder);
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
        let made = self.create(&Self::path_of(key));
        #[cfg(feature = "testing")]
        if matches!(made, Ok(true)) {
            super::testing::made();
        }
        made
    }

    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        self.swap(&Self::path_of(key), expected, new, false)
    }

    fn replace_along(
        &self,
        key: &Key,
        expected: Option<&[u8]>,
        new: &[u8],
        along: &Along,
    ) -> Result<Replaced> {
        let is_taking = !along.put.is_empty();
        along::one_by_one(self, along, || match expected {
            Some(expected) => self.swap(&Self::path_of(key), expected, new, is_taking),
            None => along::swap(self, key, None, new),
        })
    }

    fn is_in_hand(&self, key: &Key) -> Result<bool> {
        FileStore::is_in_hand(self, &Self::path_of(key))
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
        let key = intent::key_hash(&path);
        let staged = self.stage(intent::Stamp::new(self.host.as_ref())?, &key, bytes)?.staged(&key);
        let published = self.publish_staged(&staged, &path);
        self.withdraw(&staged);
        let published = published?;
        self.sync_names(&path)?;
        Ok(published)
    }

    /// Written at its name at once: what is staged and takes its time would be swept as left over.
    fn publish_from(&self, key: &Key, from: &mut Measured<'_>) -> Result<bool> {
        let path = Self::path_of(key);
        if !self.whole.load(Ordering::Relaxed) {
            layout::make(self)?; // whoever began it may have been stopped
        }
        let made = self.made(&path, || self.files.write_from(&path, from, self.sync));
        if let Some(error) = from.failed() {
            return Err(error);
        }
        let made = made?;
        match self.sync_names(&path) {
            // Somebody removed it meanwhile, and the folder with it.
            Err(_) if matches!(self.files.open(&path), Ok(None)) => Ok(made),
            synced => synced.map(|()| made),
        }
    }

    fn open(&self, key: &Key) -> Result<Option<Box<dyn Read + Send>>> {
        let path = Self::path_of(key);
        self.files.open(&path).map_err(|e| self.error("read", &path, e))
    }

    fn remove(&self, key: &Key) -> Result<bool> {
        self.remove_path(&Self::path_of(key))
    }

    fn hint(&self, key: &Key) -> Result<()> {
        self.put_hint(&Self::path_of(key))
    }

    fn unhint(&self, key: &Key) -> Result<()> {
        self.remove_hint(&Self::path_of(key))
    }

    fn log(&self, key: &Key, line: &[u8]) -> Result<()> {
        let path = Self::path_of(key);
        let line = log::apart(line);
        self.in_folder(&path, || self.files.append(&path, &line)).map_err(|e| self.error("add to", &path, e))
    }

    fn logged(&self, key: &Key, from: u64, limit: usize) -> Result<Logged> {
        let path = Self::path_of(key);
        let found = self.files.read_from(&path, from, limit).map_err(|e| self.error("read", &path, e))?;
        let (bytes, next) = found.unwrap_or((Vec::new(), from));
        Ok(Logged { bytes, next })
    }

    fn tidy(&self) {
        self.cool();
    }

    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        let walk = Walk::new(&self.files, prefix, after).take(limit);
        walk.map(|item| item.map_err(|unlisted| self.unlisted(unlisted))).collect()
    }

    fn parts(&self, folder: &str) -> Result<Vec<String>> {
        let Some(path) = names::internal_folder(folder).map(|path| layout::path(&path)) else {
            return Ok(Vec::new());
        };
        let entries = match self.files.list(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|e| self.error("list", &path, e))?,
        };
        let mut parts = Vec::new();
        for Entry { name, is_folder } in entries {
            let text = if is_folder { names::text_of_folder(&name) } else { names::text_of_file(&name) };
            let Some(part) = text.and_then(|text| String::from_utf8(text).ok()) else { continue };
            match part.strip_suffix('/') {
                Some(whole) => parts.push(whole.to_owned()),
                None if !is_folder => parts.push(part),
                // A part that goes on in the folder.
                None => return parts_by_listing(self, folder),
            }
        }
        parts.sort_unstable();
        Ok(parts)
    }

    fn nodes(&self, unreadable: &mut dyn FnMut(NodeId, Error)) -> Result<Vec<NodeId>> {
        let mut whole = Ok(());
        let ids = Walk::nodes(&self.files, &mut |unlisted| match unlisted.id() {
            Some(folder) => unreadable(folder, self.unlisted(unlisted)),
            None => whole = Err(self.unlisted(unlisted)),
        });
        whole.map(|()| ids)
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
        self.found_wrong()
    }

    fn clean(&self) -> Result<Vec<Finding>> {
        self.cleaned()
    }
}

/// The folder that a path is in.
pub(super) fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
