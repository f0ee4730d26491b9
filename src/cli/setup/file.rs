//! Files, read with suspicion and written whole.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use claimdir::{Error, Result};

use super::refused;

/// No such file is larger.
const MAX_BYTES: u64 = 1 << 20;

/// What is at a path.
#[derive(PartialEq)]
pub(super) enum Found {
    Nothing,
    Text(String),
    /// A file that is no text, or a link to one.
    Opaque,
}

/// The text at `path`, below `base`; `None`: nothing is there. A symbolic link is refused, also on the way.
pub(super) fn read(base: &Path, path: &Path) -> Result<Option<String>> {
    let Some(found) = look(base, path)? else { return Ok(None) };
    if found.is_symlink() {
        return Err(refused(path, "it is a symbolic link"));
    }
    if !found.is_file() {
        return Err(refused(path, "it is not a file"));
    }
    let text = String::from_utf8(bytes(path)?).map_err(|_| refused(path, "it is not valid UTF-8"))?;
    Ok(Some(text))
}

/// The program at `path`, which need not be read to be run, also by a link.
pub(super) fn program(base: &Path, path: &Path) -> Result<Found> {
    let Some(found) = look(base, path)? else { return Ok(Found::Nothing) };
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return Err(refused(
            path,
            if found.is_symlink() { "it is a link to no file" } else { "it is not a file" },
        ));
    }
    if found.is_symlink() || found.len() > MAX_BYTES {
        return Ok(Found::Opaque);
    }
    Ok(String::from_utf8(bytes(path)?).map_or(Found::Opaque, Found::Text))
}

/// What is at `path`, if anything is. A symbolic link on the way is refused.
fn look(base: &Path, path: &Path) -> Result<Option<Metadata>> {
    let above = path.ancestors().skip(1).take_while(|folder| *folder != base);
    for folder in above {
        match fs::symlink_metadata(folder) {
            Ok(found) if found.is_symlink() => {
                return Err(refused(path, &format!("{} is a symbolic link", folder.display())));
            }
            Ok(found) if !found.is_dir() => {
                return Err(refused(path, &format!("{} is not a folder", folder.display())));
            }
            _ => {}
        }
    }
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound) => Ok(None),
        Err(e) => Err(refused(path, &format!("it can't be looked at: {e}"))),
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|e| refused(path, &format!("it can't be read: {e}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refused(path, &format!("it has more than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

/// May the file at `path`, if it is there, be written?
pub(super) fn is_writable(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |found| found.permissions().mode() & 0o222 != 0)
}

pub(super) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o100 != 0)
}

/// Writes all of it or nothing, with the permissions that the file has.
pub(super) fn write(path: &Path, text: &str, executable: bool) -> Result<()> {
    let failed = |e: io::Error| Error::io("write", path, e);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let new = path.with_file_name(name);
    let mode = if executable { 0o777 } else { 0o666 };
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new).map_err(failed)?;
    let written = put(file, text, fs::metadata(path).ok().map(|found| found.permissions()));
    written.and_then(|()| fs::rename(&new, path)).map_err(|e| {
        let _ = fs::remove_file(&new);
        failed(e)
    })
}

fn put(mut file: File, text: &str, permissions: Option<Permissions>) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
    file.sync_all()
}

/// Is there another file at `path` than that at `other`?
pub(super) fn is_another(path: &Path, other: &Path) -> bool {
    let number = |path: &Path| fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()));
    number(path).is_some_and(|found| number(other) != Some(found))
}

/// Gives the file at `path` the name `name`, too.
pub(super) fn link(path: &Path, name: &Path) -> Result<()> {
    match fs::hard_link(path, name) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && !is_another(name, path) => Ok(()),
        done => done.map_err(|e| Error::io("link", name, e)),
    }
}

/// Puts the file at `from` in the place of that at `to`.
pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|e| Error::io("rename", from, e))
}

/// Removes a file that has nothing but what we wrote.
pub(super) fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|e| Error::io("remove", path, e))
}

/// Removes the folders between `base` and `path` that are empty.
pub(super) fn remove_empty(base: &Path, path: &Path) {
    let above = path.ancestors().skip(1).take_while(|folder| *folder != base);
    // The first that is not empty ends it.
    let _ = above.map(fs::remove_dir).find(std::result::Result::is_err);
}
