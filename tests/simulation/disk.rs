//! A file system in memory: names, files, and what a power cut may leave of them.
//!
//! A name's changes since its folder was last synced may each be there or not after a power cut: any one of the
//! values it had since then is what it comes back with, each name for itself. A file's bytes that were not synced
//! come back whole, cut short or not at all.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::{self, ErrorKind};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Folder,
    File(usize),
}

struct Inode {
    bytes: Vec<u8>,
    synced: bool,
    hash: u64,
}

pub struct Disk {
    inodes: Vec<Inode>,
    entries: BTreeMap<String, Entry>,
    /// For each name changed since its folder was synced: what it was then, and all between then and now.
    past: BTreeMap<String, Vec<Option<Entry>>>,
}

impl Disk {
    /// Nothing but the folder in which the claim directory may be made.
    pub fn new() -> Disk {
        let entries = BTreeMap::from([("..".to_owned(), Entry::Folder)]);
        Disk { inodes: Vec::new(), entries, past: BTreeMap::new() }
    }

    fn file(&self, path: &str) -> Option<usize> {
        match self.entries.get(path) {
            Some(Entry::File(inode)) => Some(*inode),
            _ => None,
        }
    }

    fn must_find(&self, path: &str) -> io::Result<usize> {
        self.file(path).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn set(&mut self, path: &str, entry: Option<Entry>) {
        let before = self.entries.get(path).copied();
        self.past.entry(path.to_owned()).or_default().push(before);
        match entry {
            Some(entry) => self.entries.insert(path.to_owned(), entry),
            None => self.entries.remove(path),
        };
    }

    /// A name that is free, in a folder that is there.
    fn must_be_free(&self, path: &str) -> io::Result<()> {
        if self.entries.get(parent(path)) != Some(&Entry::Folder) {
            return Err(ErrorKind::NotFound.into());
        }
        if self.entries.contains_key(path) { Err(ErrorKind::AlreadyExists.into()) } else { Ok(()) }
    }

    pub fn read(&self, path: &str) -> Option<&[u8]> {
        self.file(path).map(|inode| self.inodes[inode].bytes.as_slice())
    }

    pub fn create(&mut self, path: &str) -> io::Result<()> {
        self.must_be_free(path)?;
        self.inodes.push(Inode { bytes: Vec::new(), synced: true, hash: 0 });
        self.set(path, Some(Entry::File(self.inodes.len() - 1)));
        Ok(())
    }

    pub fn write(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let inode = self.must_find(path)?;
        self.inodes[inode] = Inode { bytes: bytes.to_vec(), synced: false, hash: hash_of(&bytes) };
        Ok(())
    }

    pub fn sync_file(&mut self, path: &str) -> io::Result<()> {
        let inode = self.must_find(path)?;
        self.inodes[inode].synced = true;
        Ok(())
    }

    pub fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let inode = self.must_find(from)?;
        match self.must_be_free(to) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        if self.file(to) == Some(inode) {
            return Ok(()); // as rename(2) has it for two names of one file
        }
        self.set(to, Some(Entry::File(inode)));
        self.set(from, None);
        Ok(())
    }

    pub fn exchange(&mut self, from: &str, to: &str) -> io::Result<()> {
        let (one, other) = (self.must_find(from)?, self.must_find(to)?);
        self.set(from, Some(Entry::File(other)));
        self.set(to, Some(Entry::File(one)));
        Ok(())
    }

    pub fn link(&mut self, from: &str, to: &str) -> io::Result<()> {
        let inode = self.must_find(from)?;
        self.must_be_free(to)?;
        self.set(to, Some(Entry::File(inode)));
        Ok(())
    }

    pub fn unlink(&mut self, path: &str) -> io::Result<()> {
        self.must_find(path)?;
        self.set(path, None);
        Ok(())
    }

    pub fn make_folder(&mut self, path: &str) -> io::Result<()> {
        self.must_be_free(path)?;
        self.set(path, Some(Entry::Folder));
        Ok(())
    }

    pub fn remove_folder(&mut self, path: &str) -> io::Result<()> {
        self.must_be_folder(path)?;
        if self.entries_of(path).next().is_some() {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        self.set(path, None);
        Ok(())
    }

    pub fn sync_folder(&mut self, folder: &str) -> io::Result<()> {
        self.must_be_folder(folder)?;
        self.past.retain(|path, _| parent(path) != folder);
        Ok(())
    }

    pub fn must_be_folder(&self, folder: &str) -> io::Result<()> {
        match self.entries.get(folder) {
            Some(Entry::Folder) => Ok(()),
            _ => Err(ErrorKind::NotFound.into()),
        }
    }

    /// The names in a folder, each with whether it is one.
    pub fn entries_of<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, bool)> {
        let first = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let below =
            self.entries.range(first.clone()..).map(|(path, entry)| (path.as_str(), *entry == Entry::Folder));
        let below = below.take_while(move |(path, _)| path.starts_with(&first));
        let child =
            move |(path, _): &(&str, bool)| !path.is_empty() && *path != ".." && parent(path) == folder;
        let name = |path: &'a str| path.rsplit_once('/').map_or(path, |(_, name)| name);
        below.filter(child).map(move |(path, is_folder)| (name(path), is_folder))
    }

    /// Every file that is not hidden.
    pub fn walk(&self) -> Vec<String> {
        let files = self.entries.iter().filter(|(_, entry)| matches!(entry, Entry::File(_)));
        let shown = |path: &&String| !path.split('/').any(|part| part.starts_with('.'));
        files.map(|(path, _)| path).filter(shown).cloned().collect()
    }

    /// What is left after a power cut, `pick`ing one of so many possibilities for each name that counts.
    pub fn power_cut(&mut self, mut pick: impl FnMut(usize) -> usize) {
        // Hints may be lost; all are or none, or each would double the images.
        let mut all_hints = None;
        let is_hint = |path: &str| [".store/due", ".store/dependents"].iter().any(|it| path.starts_with(it));
        for (path, mut values) in std::mem::take(&mut self.past) {
            values.push(self.entries.get(&path).copied());
            values.dedup();
            let last = values.len() - 1;
            // Nobody reads an intent of before; one image of those is enough.
            let chosen = match path.as_str() {
                path if path.starts_with(".store/intents/") => 0,
                path if is_hint(path) => last * *all_hints.get_or_insert_with(|| pick(2)),
                _ => pick(values.len()),
            };
            match values[last - chosen] {
                Some(entry) => self.entries.insert(path, entry),
                None => self.entries.remove(&path),
            };
        }
        let lost = |path: &String, entries: &BTreeMap<String, Entry>| {
            let mut at = path.as_str();
            while at != ".." {
                at = parent(at);
                if entries.get(at) != Some(&Entry::Folder) {
                    return true;
                }
            }
            false
        };
        let kept = self.entries.clone();
        self.entries.retain(|path, _| path == ".." || !lost(path, &kept));
        let files: Vec<(String, usize)> = self.files().collect();
        for (path, inode) in files {
            let counts = !path.starts_with(".store/intents/") && !is_hint(&path); // a hint is empty
            if !self.inodes[inode].synced && counts {
                let whole = self.inodes[inode].bytes.len();
                let left = [whole, whole / 2, 0][pick(3)];
                let file = &mut self.inodes[inode];
                file.bytes.truncate(left);
                file.hash = hash_of(&file.bytes);
            }
            self.inodes[inode].synced = true;
        }
    }

    fn files(&self) -> impl Iterator<Item = (String, usize)> {
        self.entries.iter().filter_map(|(path, entry)| match entry {
            Entry::File(inode) => Some((path.clone(), *inode)),
            Entry::Folder => None,
        })
    }

    /// Tells two contents apart, of the names and with `past` of what a power cut would leave.
    pub fn fingerprint(&self, past: bool) -> u64 {
        let mut hasher = DefaultHasher::new();
        let mut add = |entry: Option<Entry>| match entry {
            Some(Entry::File(inode)) => {
                (self.inodes[inode].hash, self.inodes[inode].synced).hash(&mut hasher)
            }
            Some(Entry::Folder) => 1u8.hash(&mut hasher),
            None => 2u8.hash(&mut hasher),
        };
        let mut names = Vec::new();
        for (path, entry) in &self.entries {
            names.push(path);
            add(Some(*entry));
        }
        for (path, values) in self.past.iter().filter(|_| past) {
            names.push(path);
            values.iter().for_each(|entry| add(*entry));
        }
        names.hash(&mut hasher);
        hasher.finish()
    }
}

/// The folder that a path is in. The claim directory itself, "", is in "..", beyond which there is nothing.
fn parent(path: &str) -> &str {
    match path {
        "" | ".." => "..",
        _ => path.rsplit_once('/').map_or("", |(folder, _)| folder),
    }
}

pub fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
