//! The real files, through descriptors of folders, so that no link on the way leads anywhere else.

use std::collections::VecDeque;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use walkdir::WalkDir;

use super::{Entry, Files, Irregular, intent, layout, log, names};
use crate::error::{Error, Result};

/// One `getdents64` into a buffer of this size reads a small folder as a snapshot.
const LIST_BUFFER: usize = 256 << 10;

/// How much of a large file is held at a time.
const STREAM_BUFFER: usize = 64 << 10;

/// A claim directory on a disk.
pub struct Disk {
    path: PathBuf,
    /// Descriptors that each call needs: of the directory, of the folders that stay, and of those of the last hints.
    open: Mutex<Open>,
    /// What the last listing was read into, for the next one.
    buffer: Mutex<Vec<u8>>,
}

#[derive(Default)]
struct Open {
    root: Option<Arc<OwnedFd>>,
    staying: [Option<Arc<OwnedFd>>; STAYING.len()],
    hints: VecDeque<(String, Arc<OwnedFd>)>,
}

/// The folders that stay as long as the directory does.
const STAYING: [&str; 2] = [layout::STORE, intent::FOLDER];

/// The folders below it hold hints and nothing else, so a call that is made in one that has since been removed, and
/// maybe made again, does no harm: it finds nothing there.
const HINTS: &str = ".store/due/";

/// So many of them stay open.
const OPEN_HINTS: usize = 8;

impl Disk {
    /// A directory that need not be there yet.
    pub(super) fn open(path: &Path) -> Result<Disk> {
        let disk = Disk { path: path.to_owned(), open: Mutex::default(), buffer: Mutex::default() };
        match disk.root() {
            Ok(_) => Ok(disk),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(disk),
            Err(e) => Err(Error::io("open", path, e)),
        }
    }

    /// The kind of file system, if other machines may write to it too, or if that can't be told.
    pub(super) fn shared_kind(&self) -> Result<Option<&'static str>> {
        let root = match self.root() {
            Ok(root) => root,
            // Not there yet: what counts is where it will be made.
            Err(_) => match folder_at(self.path.parent().unwrap_or(Path::new("/"))) {
                Ok(parent) => Arc::new(parent),
                Err(_) => return Ok(None),
            },
        };
        let found = rustix::fs::fstatfs(&root).map_err(|e| Error::io("look at", &self.path, e.into()))?;
        Ok(shared_kind(found.f_type as u64))
    }

    fn root(&self) -> io::Result<Arc<OwnedFd>> {
        let mut open = self.opened();
        if let Some(root) = &open.root {
            return Ok(root.clone());
        }
        let root = Arc::new(folder_at(&self.path)?);
        open.root = Some(root.clone());
        Ok(root)
    }

    /// A folder's descriptor.
    fn folder(&self, folder: &str) -> io::Result<Arc<OwnedFd>> {
        let root = self.root()?;
        if folder.is_empty() {
            return Ok(root);
        }
        if folder == "." || folder == ".." {
            return folder_at(&self.path.join(folder)).map(Arc::new);
        }
        let staying = STAYING.iter().position(|staying| *staying == folder);
        if let Some(open) = staying.and_then(|at| self.opened().staying[at].clone()) {
            return Ok(open);
        }
        let open = Arc::new(folder_beneath(&root, folder)?);
        if let Some(at) = staying {
            self.opened().staying[at] = Some(open.clone());
        }
        Ok(open)
    }

    /// Acts on a name in the folder that it is in.
    fn on<T>(
        &self,
        path: &str,
        act: impl Fn(BorrowedFd<'_>, &str) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_of_hints = folder.starts_with(HINTS);
        step();
        if is_of_hints && let Some(open) = self.open_hints(folder) {
            match act(open.as_fd(), name) {
                Err(Errno::NOENT) => self.opened().hints.retain(|(known, _)| known != folder),
                done => return Ok(done?),
            }
        }
        let open = self.folder(folder)?;
        if is_of_hints {
            let hints = &mut self.opened().hints;
            hints.truncate(OPEN_HINTS - 1);
            hints.push_front((folder.to_owned(), open.clone()));
        }
        Ok(act(open.as_fd(), name)?)
    }

    fn open_hints(&self, folder: &str) -> Option<Arc<OwnedFd>> {
        self.opened().hints.iter().find(|(known, _)| known == folder).map(|(_, open)| open.clone())
    }

    fn opened(&self) -> MutexGuard<'_, Open> {
        // Each change leaves whole descriptors.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder that a path is in, and the path's last part.
    fn at<'a>(&self, path: &'a str) -> io::Result<(Arc<OwnedFd>, &'a str)> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        step();
        Ok((self.folder(folder)?, name))
    }
}

impl Disk {
    /// Opens a regular file; its size.
    fn regular(&self, path: &str) -> io::Result<Option<(OwnedFd, usize)>> {
        let (folder, name) = match self.at(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            at => at?,
        };
        // Without NONBLOCK, opening a FIFO would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(irregular("a symbolic link, and a record is a regular file")),
            Err(Errno::NXIO | Errno::NODEV) => {
                return Err(irregular("a socket or a device, and a record is a regular file"));
            }
            Err(e) => return Err(e.into()),
        };
        let found = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(irregular("a folder, and a record is a regular file")),
            _ => return Err(irregular("a pipe or a device, and a record is a regular file")),
        }
        Ok(Some((file, usize::try_from(found.st_size).unwrap_or(usize::MAX))))
    }

    /// Makes a file that `fill` fills; none is left if that fails.
    fn make(&self, path: &str, sync: bool, fill: impl FnOnce(&OwnedFd) -> io::Result<()>) -> io::Result<()> {
        let (folder, name) = self.at(path)?;
        let file = create(folder.as_fd(), name)?;
        step();
        let written = fill(&file)
            .and_then(|()| if sync { rustix::fs::fdatasync(&file).map_err(io::Error::from) } else { Ok(()) });
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
        }
        written
    }
}

impl Files for Disk {
    fn read(&self, path: &str, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let Some((file, size)) = self.regular(path)? else { return Ok(None) };
        if size > limit {
            return Err(irregular("larger than a record may be"));
        }
        read_whole(file.as_fd(), size).map(Some)
    }

    fn open(&self, path: &str) -> io::Result<Option<Box<dyn Read + Send>>> {
        Ok(self.regular(path)?.map(|(file, _)| Box::new(File::from(file)) as Box<dyn Read + Send>))
    }

    fn create(&self, path: &str) -> io::Result<()> {
        self.on(path, create).map(drop)
    }

    fn write(&self, path: &str, bytes: &[u8], sync: bool) -> io::Result<()> {
        self.make(path, sync, |file| write_whole(file.as_fd(), bytes))
    }

    fn write_from(&self, path: &str, from: &mut dyn Read, sync: bool) -> io::Result<()> {
        let mut buffer = vec![0; STREAM_BUFFER];
        self.make(path, sync, |file| {
            loop {
                match from.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(count) => write_whole(file.as_fd(), buffer.get(..count).unwrap_or_default())?,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
        })
    }

    fn append(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        step();
        log::append(self.root()?.as_fd(), path, bytes)
    }

    fn read_from(&self, path: &str, from: u64, limit: usize) -> io::Result<Option<(Vec<u8>, u64)>> {
        let Some((file, size)) = self.regular(path)? else { return Ok(None) };
        log::read_from(file.as_fd(), size as u64, from, limit).map(Some)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from_folder, from) = self.at(from)?;
        let (to_folder, to) = self.at(to)?;
        Ok(rustix::fs::renameat(&from_folder, from, &to_folder, to)?)
    }

    fn exchange(&self, from: &str, to: &str) -> io::Result<()> {
        let (from_folder, from) = self.at(from)?;
        let (to_folder, to) = self.at(to)?;
        match rustix::fs::renameat_with(&from_folder, from, &to_folder, to, RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                Ok(rustix::fs::renameat(&from_folder, from, &to_folder, to)?)
            }
            done => Ok(done?),
        }
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        let (from_folder, from) = self.at(from)?;
        self.on(to, |to_folder, to| rustix::fs::linkat(&from_folder, from, to_folder, to, AtFlags::empty()))
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        self.on(path, |folder, name| rustix::fs::unlinkat(folder, name, AtFlags::empty()))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        step();
        // A descriptor of its own: the position of a listing belongs to the open folder.
        let mut folder = self.folder(folder)?;
        if Arc::strong_count(&folder) > 1 {
            folder = Arc::new(folder_below(folder.as_fd(), ".")?);
        }
        let mut buffer = std::mem::take(&mut *self.buffer.lock().unwrap_or_else(PoisonError::into_inner));
        buffer.reserve(LIST_BUFFER);
        let entries = entries_of(&folder, &mut buffer);
        *self.buffer.lock().unwrap_or_else(PoisonError::into_inner) = buffer;
        entries
    }

    fn make_folder(&self, folder: &str) -> io::Result<()> {
        step();
        let mode = Mode::from_raw_mode(0o777); // less what the umask says
        if folder.is_empty() {
            return Ok(rustix::fs::mkdir(&self.path, mode)?);
        }
        let (above, name) = self.at(folder)?;
        Ok(rustix::fs::mkdirat(&above, name, mode)?)
    }

    fn remove_folder(&self, folder: &str) -> io::Result<()> {
        self.on(folder, |above, name| rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR))
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        step();
        Ok(rustix::fs::fsync(self.folder(folder)?)?)
    }

    fn sync_file(&self, path: &str) -> io::Result<()> {
        let (folder, name) = self.at(path)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
            Ok(file) => Ok(rustix::fs::fdatasync(file)?),
            Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn walk(&self) -> io::Result<Vec<String>> {
        let hidden = |name: &OsStr| name.as_bytes().starts_with(b".");
        let walk = WalkDir::new(&self.path).min_depth(1).sort_by_file_name();
        let mut paths = Vec::new();
        for entry in walk.into_iter().filter_entry(|entry| entry.depth() == 0 || !hidden(entry.file_name())) {
            let entry = match entry {
                Ok(entry) => entry,
                // A listing says which folder can't be read.
                Err(e) if e.depth() > 0 || e.io_error().is_some_and(is_missing) => continue,
                Err(e) => return Err(e.into()),
            };
            let path = entry.path().strip_prefix(&self.path).unwrap_or(entry.path());
            let path = path.to_string_lossy().into_owned();
            // A folder with a record's name is reported as one; reading it will say what is wrong.
            if !entry.file_type().is_dir() || path.ends_with(names::SUFFIX) {
                paths.push(path);
            }
        }
        Ok(paths)
    }

    fn reopen(&self) {
        *self.opened() = Open::default();
    }
}

const NO_FOLDER: &str = "below a symbolic link or a file, not a folder";

fn irregular(what: &'static str) -> io::Error {
    io::Error::other(Irregular(what))
}

fn folder_at(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn folder_below(above: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(above, name, flags, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => Err(irregular(NO_FOLDER)),
        opened => Ok(opened?),
    }
}

/// A folder below `root`, reached without following a link on the way: in one call, or part by part where the kernel
/// has no such call or a sandbox forbids it.
fn folder_beneath(root: &OwnedFd, folder: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(root, folder, flags, Mode::empty(), resolve) {
        Err(Errno::NOTDIR | Errno::LOOP) => Err(irregular(NO_FOLDER)),
        Err(Errno::NOSYS | Errno::PERM) => part_by_part(root.as_fd(), folder),
        opened => Ok(opened?),
    }
}

pub(super) fn part_by_part(root: BorrowedFd<'_>, folder: &str) -> io::Result<OwnedFd> {
    let start = folder_below(root, ".");
    folder.split('/').fold(start, |above, part| folder_below(above?.as_fd(), part))
}

fn entries_of(folder: &OwnedFd, buffer: &mut Vec<u8>) -> io::Result<Vec<Entry>> {
    let mut listing = RawDir::new(folder, buffer.spare_capacity_mut());
    let mut entries = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        match is_folder(folder.as_fd(), name, entry.file_type()) {
            Ok(is_folder) => entries.push(Entry { name: name.to_string_lossy().into_owned(), is_folder }),
            Err(e) if is_missing(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(entries)
}

/// Is the entry a folder? Some file systems list no types.
fn is_folder(folder: BorrowedFd<'_>, name: &CStr, listed: FileType) -> io::Result<bool> {
    if listed != FileType::Unknown {
        return Ok(listed == FileType::Directory);
    }
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode) == FileType::Directory)
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn create(folder: BorrowedFd<'_>, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o666)) // less what the umask says
}

fn read_whole(file: BorrowedFd<'_>, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size + 1); // one more, so that a full read is told from a longer file
    loop {
        let room = bytes.capacity() - bytes.len();
        match rustix::io::read(file, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(n) if n < room => return Ok(bytes),
            Ok(_) => return Err(io::Error::other("it grew while it was read: not written by claim")),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

fn write_whole(file: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::NOSPC.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// File systems by the magic numbers of `statfs(2)` that other machines may write, or that cache names so that
/// a listing may lack what another process made.
fn shared_kind(magic: u64) -> Option<&'static str> {
    match magic {
        0x6969 => Some("NFS"),
        0x0102_1997 => Some("9p"),
        0x6573_5546 => Some("FUSE or virtiofs"),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => Some("SMB"),
        0x00c3_6400 => Some("Ceph"),
        0x5346_414f | 0x6b41_4653 => Some("AFS"),
        0x7375_7245 => Some("Coda"),
        0x0116_1970 => Some("GFS2"),
        0x7461_636f => Some("OCFS2"),
        0x0bd0_0bd0 => Some("Lustre"),
        0x4750_4653 => Some("GPFS"),
        0x7863_6673 | 0x786f_4256 => Some("a shared folder of a virtual machine"),
        0x1983_0326 => Some("BeeGFS"),
        _ => None,
    }
}

/// A point between two calls. Tests wait here for a random moment, to widen what a race needs.
#[cfg(not(feature = "testing"))]
fn step() {}

#[cfg(feature = "testing")]
use super::testing::step;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_is_reached_in_one_call_as_it_is_part_by_part() {
        let scratch = tempfile::tempdir().unwrap();
        let root = folder_at(scratch.path()).unwrap();
        std::fs::create_dir_all(scratch.path().join("a/b/c")).unwrap();
        std::fs::write(scratch.path().join("a/file"), "").unwrap();
        symlink("b", scratch.path().join("a/link")).unwrap();
        symlink("/", scratch.path().join("a/out")).unwrap();
        for (path, expected) in [
            ("a", None),
            ("a/b/c", None),
            ("a/b/none", Some(io::ErrorKind::NotFound)),
            ("none/b", Some(io::ErrorKind::NotFound)),
            ("a/link", Some(io::ErrorKind::Other)),
            ("a/link/c", Some(io::ErrorKind::Other)),
            ("a/out/tmp", Some(io::ErrorKind::Other)),
            ("a/file/c", Some(io::ErrorKind::Other)),
            ("a/file", Some(io::ErrorKind::Other)),
        ] {
            let parts = |root: &OwnedFd, folder: &str| part_by_part(root.as_fd(), folder);
            for reach in [folder_beneath, parts] {
                let reached = reach(&root, path).map(|folder| rustix::fs::fstat(folder).unwrap().st_ino);
                let there = std::fs::metadata(scratch.path().join(path));
                match expected {
                    None => {
                        assert_eq!(reached.unwrap(), std::os::unix::fs::MetadataExt::ino(&there.unwrap()))
                    }
                    Some(kind) => assert_eq!(reached.unwrap_err().kind(), kind, "{path}"),
                }
            }
        }
    }

    #[test]
    fn a_folder_of_hints_that_was_removed_is_opened_anew() {
        let scratch = tempfile::tempdir().unwrap();
        let disk = Disk::open(scratch.path()).unwrap();
        let folder = scratch.path().join(".store/due/a");
        for _ in 0..2 {
            std::fs::create_dir_all(&folder).unwrap();
            disk.create(".store/due/a/hint").unwrap();
            assert!(folder.join("hint").exists());
            std::fs::remove_dir_all(&folder).unwrap();
        }
        let removed = |done: io::Result<()>| done.unwrap_err().kind() == io::ErrorKind::NotFound;
        assert!(removed(disk.create(".store/due/a/hint")) && removed(disk.unlink(".store/due/a/hint")));
        std::fs::create_dir_all(&folder).unwrap();
        disk.create(".store/due/a/hint").unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("hint"), "").unwrap();
        disk.unlink(".store/due/a/hint").unwrap();
        disk.remove_folder(".store/due/a").unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn what_is_a_folder_is_known_where_no_types_are_listed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = folder_at(scratch.path()).unwrap();
        std::fs::create_dir(scratch.path().join("folder")).unwrap();
        std::fs::write(scratch.path().join("file"), "").unwrap();
        symlink("folder", scratch.path().join("link")).unwrap();
        for (name, expected) in [(c"folder", true), (c"file", false), (c"link", false)] {
            let found = is_folder(folder.as_fd(), name, FileType::Unknown).unwrap();
            assert_eq!(found, expected, "{name:?}");
        }
        assert!(is_missing(&is_folder(folder.as_fd(), c"gone", FileType::Unknown).unwrap_err()));
    }
}
