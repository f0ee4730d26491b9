//! What a listing looks at, and what it does where it can't look.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use claimdir::host::Os;
use claimdir::store::files::{Disk, Entry, FileStore, Files, Options};
use claimdir::store::{Key, Prefix, Store};
use claimdir::{Code, NodeId};

/// Folders in memory, which say what was listed.
#[derive(Clone, Default)]
struct Tree {
    folders: BTreeMap<String, BTreeSet<(String, bool)>>,
    failing: BTreeMap<String, ErrorKind>,
    listed: Arc<Mutex<Vec<String>>>,
    /// How often the folder of a new file turns out to be missing.
    missing: Arc<AtomicUsize>,
}

impl Tree {
    fn of(paths: impl IntoIterator<Item = String>) -> Tree {
        let mut tree = Tree::default();
        for path in paths {
            let (mut at, mut is_folder) = (path.as_str(), false);
            while !at.is_empty() {
                let (above, name) = at.rsplit_once('/').unwrap_or(("", at));
                tree.folders.entry(above.to_owned()).or_default().insert((name.to_owned(), is_folder));
                (at, is_folder) = (above, true);
            }
        }
        tree
    }

    fn failing(mut self, folder: &str, kind: ErrorKind) -> Tree {
        self.failing.insert(folder.to_owned(), kind);
        self
    }

    fn store(&self) -> FileStore<Tree> {
        FileStore::over(self.clone(), Path::new("/claims"), false, Arc::new(Os::new())).unwrap()
    }

    /// The folders that were listed since the last call.
    fn listed(&self) -> Vec<String> {
        std::mem::take(&mut self.listed.lock().unwrap())
    }
}

impl Files for Tree {
    fn read(&self, _path: &str, _limit: usize) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.listed.lock().unwrap().push(folder.to_owned());
        if let Some(kind) = self.failing.get(folder) {
            return Err((*kind).into());
        }
        let entries = self.folders.get(folder).ok_or(ErrorKind::NotFound)?.iter();
        Ok(entries.map(|(name, is_folder)| Entry { name: name.clone(), is_folder: *is_folder }).collect())
    }

    fn create(&self, _path: &str) -> io::Result<()> {
        let less = |left: usize| left.checked_sub(1);
        let is_missing = self.missing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if is_missing { Err(ErrorKind::NotFound.into()) } else { Ok(()) }
    }

    fn write(&self, _path: &str, _bytes: &[u8], _sync: bool) -> io::Result<()> {
        read_only()
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        read_only()
    }

    fn exchange(&self, _from: &str, _to: &str) -> io::Result<()> {
        read_only()
    }

    fn link(&self, _from: &str, _to: &str) -> io::Result<()> {
        read_only()
    }

    fn unlink(&self, _path: &str) -> io::Result<()> {
        read_only()
    }

    fn make_folder(&self, _folder: &str) -> io::Result<()> {
        Ok(())
    }

    fn remove_folder(&self, _folder: &str) -> io::Result<()> {
        read_only()
    }

    fn sync_folder(&self, _folder: &str) -> io::Result<()> {
        read_only()
    }

    fn sync_file(&self, _path: &str) -> io::Result<()> {
        read_only()
    }

    fn walk(&self) -> io::Result<Vec<String>> {
        read_only()
    }

    fn reopen(&self) {}
}

fn read_only<T>() -> io::Result<T> {
    Err(ErrorKind::ReadOnlyFilesystem.into())
}

fn names(store: &dyn Store, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Vec<String> {
    let keys = store.list(prefix, after, limit).unwrap();
    keys.iter().map(|key| key.name().to_owned()).collect()
}

/// 4,096 hints in folders of 16.
fn many() -> Tree {
    Tree::of((0..4096).map(|n| format!(".store/due/{:02x}/{:x}/{:x}", n / 256, n / 16 % 16, n % 16)))
}

#[test]
fn a_listing_looks_only_into_the_folders_on_its_way() {
    let tree = many();
    let store = tree.store();
    tree.listed();
    for (after, limit, first, folders) in [
        (None, 1, "due/00/0/0", &["", "/00", "/00/0"][..]),
        (None, 16, "due/00/0/0", &["", "/00", "/00/0"]),
        (None, 17, "due/00/0/0", &["", "/00", "/00/0", "/00/1"]),
        (Some("due/07/3/9"), 6, "due/07/3/a", &["", "/07", "/07/3"]),
        (Some("due/07/3/f"), 1, "due/07/4/0", &["", "/07", "/07/3", "/07/4"]),
        (Some("due/07/f/f"), 1, "due/08/0/0", &["", "/07", "/07/f", "/08", "/08/0"]),
        (Some("due/0f/zzz"), 1, "", &["", "/0f"]),
        (Some("dug"), 1, "", &[]),
        (None, 0, "", &[]),
    ] {
        let found = names(&store, &Prefix::Internal("due"), after, limit);
        assert_eq!(found.len(), if first.is_empty() { 0 } else { limit }, "{after:?}");
        assert_eq!(found.first().map_or("", String::as_str), first, "{after:?}");
        let folders: Vec<_> = folders.iter().map(|folder| format!(".store/due{folder}")).collect();
        assert_eq!(tree.listed(), folders, "{limit} after {after:?}");
    }
}

#[test]
fn pieces_of_long_parts_are_looked_at_in_their_turn() {
    let ids = [("a", " z"), ("a", "/z"), ("a", "zz/z"), ("b", "zzz"), ("c", "zzz")];
    let ids = ids.map(|(byte, end)| byte.repeat(240) + end);
    let tree = Tree::default().store();
    let path = |id: &String| {
        let place = tree.place(Some(&Key::Node(NodeId::new(id.as_str()).unwrap())));
        place.strip_prefix("/claims/").unwrap().to_owned()
    };
    let tree = Tree::of(ids.iter().map(path));
    let store = tree.store();
    // After a key of one part there may be more of that part.
    for (at, looked_at) in ["a", "a", "a", "ab", "bc"].into_iter().enumerate() {
        let after = at.checked_sub(1).map(|before| ids[before].as_str());
        assert_eq!(names(&store, &Prefix::Nodes, after, 1), [ids[at].clone()]);
        let first: BTreeSet<char> = tree.listed().iter().filter_map(|folder| folder.chars().next()).collect();
        assert_eq!(first.into_iter().collect::<String>(), looked_at, "after {after:?}");
    }
}

#[test]
fn a_folder_that_goes_away_meanwhile_is_passed_over() {
    let store = many().failing(".store/due/00", ErrorKind::NotFound).store();
    assert_eq!(names(&store, &Prefix::Internal("due"), None, 1), ["due/01/0/0"]);
}

#[test]
fn a_folder_that_cannot_be_listed_is_named_and_the_others_go_on() {
    let paths = ["a.claim", "b%20/c/d.claim", "e/f.claim"];
    let store = Tree::of(paths.map(str::to_owned)).failing("b%20/c", ErrorKind::PermissionDenied).store();
    assert_eq!(names(&store, &Prefix::Nodes, None, 1), ["a"]);
    let error = store.list(&Prefix::Nodes, None, 2).unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied);
    assert!(error.to_string().contains("/claims/b%20/c"), "{error}");
    let mut unreadable = Vec::new();
    let nodes = store.nodes(&mut |folder, error| unreadable.push((folder, error.code()))).unwrap();
    assert_eq!(nodes, ["a", "e/f"].map(|id| NodeId::new(id).unwrap()));
    assert_eq!(unreadable, [(NodeId::new("b /c").unwrap(), Code::PermissionDenied)]);
    let store = Tree::default().failing("", ErrorKind::PermissionDenied).store();
    assert!(store.nodes(&mut |_, _| ()).is_err(), "a directory that can't be read at all");
}

/// A claim directory on the disk, its layout made.
fn on_disk(folder: &Path) -> FileStore<Disk> {
    let options = Options { sync: false, ..Options::default() };
    let store = FileStore::open(&folder.join(".claims"), options, Arc::new(Os::new())).unwrap();
    store.prepare().unwrap();
    store
}

#[test]
fn what_is_no_record_is_no_node() {
    let scratch = tempfile::tempdir().unwrap();
    let store = on_disk(scratch.path());
    let at = |path: &str| scratch.path().join(".claims").join(path);
    for folder in ["folder.claim/below", "folder", "%zz", "%", ".hidden", "outside"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for file in [
        "n.claim",
        "plain",
        "folder/n.claim",
        "folder/plain.txt",
        "folder.claim/n.claim",
        "%zz/n.claim",
        "%/n.claim",
        ".hidden/n.claim",
        ".n.claim",
        "%6e.claim",
        "outside/n.claim",
    ] {
        fs::write(at(file), "").unwrap();
    }
    symlink("outside", at("link")).unwrap();
    symlink("n.claim", at("link.claim")).unwrap();
    let nodes = ["folder", "folder/n", "link", "n", "outside/n"];
    assert_eq!(names(&store, &Prefix::Nodes, None, 99), nodes);
}

#[test]
fn a_link_in_place_of_a_folder_of_the_stores_own_is_not_followed() {
    let scratch = tempfile::tempdir().unwrap();
    let store = on_disk(scratch.path());
    fs::create_dir(scratch.path().join("outside")).unwrap();
    fs::write(scratch.path().join("outside/n"), "").unwrap();
    symlink("../../outside", scratch.path().join(".claims/.store/due")).unwrap();
    let error = store.list(&Prefix::Internal("due"), None, 9).unwrap_err();
    assert_eq!(error.code(), Code::RecordUnreadable);
}

#[test]
fn the_last_hint_takes_its_folders_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    let store = on_disk(scratch.path());
    let long = format!("due/q/{}/5/a", "p".repeat(300));
    let [one, other, top] = ["due/q/p/5/a", &long, "due/a"].map(|name| Key::internal(name).unwrap());
    let due = scratch.path().join(".claims/.store/due");
    store.hint(&one).unwrap();
    store.hint(&other).unwrap();
    // Another process's: to the one that put them their folders are warm.
    let others = on_disk(scratch.path());
    others.unhint(&one).unwrap();
    assert!(!due.join("q/p").exists() && due.join("q").exists());
    others.unhint(&other).unwrap();
    assert!(!due.join("q").exists() && due.exists());
    store.hint(&top).unwrap();
    store.unhint(&top).unwrap();
    assert!(due.exists());
    let store = others;
    // Who was stopped in between left empty folders, and another takes them away.
    for left in ["q/p/5", "q"] {
        fs::create_dir_all(due.join(left)).unwrap();
        store.unhint(&one).unwrap();
        assert!(!due.join("q").exists() && due.exists());
    }
}

#[test]
fn the_folders_of_the_last_hints_stay_for_the_next_ones_until_it_is_tidied() {
    let scratch = tempfile::tempdir().unwrap();
    let store = on_disk(scratch.path());
    let due = scratch.path().join(".claims/.store/due");
    let folders = || (0..9).filter(|at| due.join(format!("q/{at}")).exists()).collect::<Vec<_>>();
    for at in 0..9 {
        let hint = Key::internal(format!("due/q/{at}/a")).unwrap();
        store.hint(&hint).unwrap();
        store.unhint(&hint).unwrap();
    }
    assert_eq!(folders(), [5, 6, 7, 8]);
    store.hint(&Key::internal("due/q/8/b").unwrap()).unwrap();
    store.tidy();
    assert_eq!(folders(), [8], "what is in use stays");
}

#[test]
fn a_folder_that_others_remove_before_its_use_is_made_again() {
    let hint = Key::internal("due/a/b").unwrap();
    let tree = Tree::default();
    tree.missing.store(9, Ordering::Relaxed);
    tree.store().hint(&hint).unwrap();
    assert_eq!(tree.missing.load(Ordering::Relaxed), 0);
    tree.missing.store(usize::MAX, Ordering::Relaxed);
    assert!(tree.store().hint(&hint).is_err(), "in vain, but not for ever");
}

#[test]
fn the_first_hint_makes_the_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join(".claims");
    let store = FileStore::open(&path, Options::default(), Arc::new(Os::new())).unwrap();
    store.hint(&Key::internal("due/a/b").unwrap()).unwrap();
    assert!(path.join(".store/due/a/b").exists() && path.join(".store/format").exists());
}
