//! The folders that a claim directory has, made at its first write.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::engine::FileStore;
use super::{Files, intent};
use crate::error::{Code, Error, Result};

/// The layout's version.
const FORMAT: u64 = 1;

/// The folder of all that is no node.
pub(super) const STORE: &str = ".store";
const FORMAT_FILE: &str = ".store/format";
/// An empty file: each hint is a name of it.
pub(super) const HINT_FILE: &str = ".store/hint";
const IGNORE_FILE: &str = ".gitignore";

/// The path of what is at `path` in the store's own folder.
pub(super) fn path(path: &str) -> String {
    format!("{STORE}/{path}")
}

/// The other way round.
pub(super) fn internal(path: &str) -> Option<&str> {
    path.strip_prefix(STORE)?.strip_prefix('/')
}

/// What `.store/format` says.
pub(super) struct Format {
    /// The machine that made the directory.
    pub(super) machine: String,
}

/// Reads the layout's version; `None` if the directory is not finished yet. A newer one is refused.
pub(super) fn read<F: Files>(store: &FileStore<F>) -> Result<Option<Format>> {
    let Some(bytes) = store.read_path(FORMAT_FILE)? else { return Ok(None) };
    let unreadable = || {
        Error::new(
            Code::RecordUnreadable,
            format!("{} is not a claim directory's format file", store.show(FORMAT_FILE)),
        )
        .hint("restore it from another claim directory of the same version of claim")
    };
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| unreadable())?;
    let format = value["format"].as_u64().ok_or_else(unreadable)?;
    if format > FORMAT {
        let message = format!("{} is of format {format}, and this program knows {FORMAT}", store.show(""));
        return Err(Error::new(Code::FormatTooNew, message).hint("use a newer claim"));
    }
    Ok(Some(Format { machine: value["machine"].as_str().unwrap_or_default().to_owned() }))
}

/// Makes what is missing. Any number of processes may do so at once, and each may be stopped on the way: the
/// format file comes last, when all before it is on disk, and who does not find it begins anew.
pub(super) fn make<F: Files>(store: &FileStore<F>) -> Result<()> {
    store.files.reopen();
    for folder in ["", STORE, intent::FOLDER] {
        match store.files.make_folder(folder) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(store.error("make", folder, e)),
            _ => {}
        }
    }
    publish(store, IGNORE_FILE, b"*\n")?;
    let format = json!({"format": FORMAT, "machine": store.host.place().machine});
    for folder in ["", ".."] {
        sync(store, folder)?;
    }
    publish(store, FORMAT_FILE, format!("{format}\n").as_bytes())?;
    sync(store, STORE)?;
    store.whole.store(true, Ordering::Relaxed);
    Ok(())
}

fn sync<F: Files>(store: &FileStore<F>, folder: &str) -> Result<()> {
    if store.sync {
        store.files.sync_folder(folder).map_err(|e| store.error("sync", folder, e))?;
    }
    Ok(())
}

fn publish<F: Files>(store: &FileStore<F>, path: &str, bytes: &[u8]) -> Result<()> {
    let staged = intent::Stamp::new(store.host.as_ref())?.staged(&intent::key_hash(path));
    store.files.write(&staged, bytes, store.sync).map_err(|e| store.error("write", &staged, e))?;
    let published = store.publish_staged(&staged, path);
    store.withdraw(&staged);
    published.map(|_| ())
}
