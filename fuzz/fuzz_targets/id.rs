//! Whatever text is an id, and whatever name a file has.

#![no_main]

use std::io;
use std::path::{Component, Path};
use std::sync::{Arc, LazyLock};

use claimdir::NodeId;
use claimdir::host::Os;
use claimdir::store::files::{Entry, FileStore, Files};
use claimdir::store::{Key, Prefix, Store};
use libfuzzer_sys::fuzz_target;

const ROOT: &str = "/claims";

static HOST: LazyLock<Arc<Os>> = LazyLock::new(|| Arc::new(Os::new()));

fuzz_target!(|text: &str| {
    if let Ok(id) = NodeId::new(text) {
        let name = name_of(&id);
        assert!(Path::new(&name).components().all(|part| matches!(part, Component::Normal(_))), "{name:?}");
        assert!(name.split('/').all(|part| part.len() <= 255 && !part.starts_with('.')), "{name:?}");
        assert!(name.bytes().all(|byte| byte.is_ascii_graphic()), "{name:?}");
        assert_eq!(ids_of(&name), [id], "{name:?}");
    }
    if let [id] = &ids_of(text)[..] {
        assert_eq!(name_of(id), text, "one id, one name");
    }
});

/// The file of `id`, relative to the claim directory.
fn name_of(id: &NodeId) -> String {
    let place = store(String::new()).place(Some(&Key::Node(id.clone())));
    place.strip_prefix(ROOT).and_then(|name| name.strip_prefix('/')).expect("inside the directory").to_owned()
}

/// The nodes of a claim directory with one file of this name.
fn ids_of(name: &str) -> Vec<NodeId> {
    let keys = store(name.to_owned()).list(&Prefix::Nodes, None, usize::MAX).unwrap();
    keys.into_iter()
        .map(|key| match key {
            Key::Node(id) | Key::Internal(id) => id,
        })
        .collect()
}

fn store(name: String) -> FileStore<OneName> {
    FileStore::over(OneName(name), Path::new(ROOT), false, HOST.clone()).unwrap()
}

/// Files of which only the one name is known.
struct OneName(String);

impl Files for OneName {
    fn read(&self, _path: &str, _limit: usize) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let below = match folder {
            "" => Some(self.0.as_str()),
            _ => self.0.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
        };
        let entry = |below: &str| match below.split_once('/') {
            Some((name, _)) => Entry { name: name.to_owned(), is_folder: true },
            None => Entry { name: below.to_owned(), is_folder: false },
        };
        Ok(below.map(entry).filter(|entry| !entry.name.is_empty()).into_iter().collect())
    }

    fn create(&self, _path: &str) -> io::Result<()> {
        unreachable()
    }

    fn write(&self, _path: &str, _bytes: &[u8], _sync: bool) -> io::Result<()> {
        unreachable()
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        unreachable()
    }

    fn exchange(&self, _from: &str, _to: &str) -> io::Result<()> {
        unreachable()
    }

    fn link(&self, _from: &str, _to: &str) -> io::Result<()> {
        unreachable()
    }

    fn unlink(&self, _path: &str) -> io::Result<()> {
        unreachable()
    }

    fn remove_folder(&self, _folder: &str) -> io::Result<()> {
        unreachable()
    }

    fn walk(&self) -> io::Result<Vec<String>> {
        unreachable()
    }

    fn make_folder(&self, _folder: &str) -> io::Result<()> {
        unreachable()
    }

    fn sync_folder(&self, _folder: &str) -> io::Result<()> {
        unreachable()
    }

    fn sync_file(&self, _path: &str) -> io::Result<()> {
        unreachable()
    }

    fn reopen(&self) {}
}

fn unreachable<T>() -> io::Result<T> {
    Err(io::Error::other("names alone need no file"))
}
