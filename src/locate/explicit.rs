//! A directory named by `--dir` or `$CLAIMS_DIR`.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{self, Path, PathBuf};

use super::{DIRECTORY, Located, Places, Why, directory, is_absence};
use crate::error::{Code, Error, Result};

/// What is expected of the folder that a named directory stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    MustExist,
    /// Whoever asks is about to make it.
    MayBeMissing,
}

/// The directory that an argument or the variable names, if one does.
pub(super) fn locate(places: &Places<'_>, parent: Parent) -> Result<Option<Located>> {
    let (named, why) = match (places.argument, places.variable) {
        (Some(named), _) if named.as_os_str().is_empty() => {
            return Err(Error::usage("--dir is empty; give it a folder"));
        }
        (Some(named), _) => (named, Why::Argument),
        (None, Some(named)) if !named.is_empty() => (Path::new(named), Why::Variable),
        _ => return Ok(None),
    };
    if let Some(located) = address(named, &why)? {
        return Ok(Some(located));
    }
    let path = resolve(named, places.cwd, parent)?;
    let exists = directory(&path)?.is_some();
    if exists && !may_be_one(&path) {
        let message =
            format!("{} is a folder with other things in it, not a claim directory", path.display());
        return Err(Error::new(Code::NoStore, message).hint(format!(
            "name a folder for claims alone, such as --dir {}",
            path.join(DIRECTORY).display()
        )));
    }
    Ok(Some(Located::folder(path, why, exists)))
}

/// Is the folder a claim directory, or could it become one without hiding what it holds from git? One slip, `--dir .`,
/// would do that to a whole project.
fn may_be_one(path: &Path) -> bool {
    if path.file_name() == Some(OsStr::new(DIRECTORY)) || path.join(".store").is_dir() {
        return true;
    }
    let Ok(mut entries) = fs::read_dir(path) else { return true };
    entries.all(|entry| entry.is_ok_and(|entry| entry.file_name().as_bytes().ends_with(b".claim")))
}

/// The address that is named, if it is one: `scheme://…`. It stays out of messages, for it may hold a password.
fn address(named: &Path, why: &Why) -> Result<Option<Located>> {
    let Some(scheme) = scheme(named.as_os_str()) else { return Ok(None) };
    let option = if *why == Why::Argument { "--dir" } else { "CLAIMS_DIR" };
    if scheme != "etcd" && scheme != "etcds" {
        let message = format!("{option} is an address of a kind that is not known ({scheme}://…)");
        return Err(Error::usage(message).hint(format!("give {option} a folder, or etcd://HOST:PORT/PREFIX")));
    }
    at_etcd(named, option, why)
}

#[cfg(feature = "etcd")]
fn at_etcd(named: &Path, option: &str, why: &Why) -> Result<Option<Located>> {
    use crate::store::etcd::Address;
    let text = named.to_str().ok_or_else(|| Error::usage(format!("{option} is not valid UTF-8")))?;
    let address = Address::parse(text)?;
    let path = PathBuf::from(address.to_string());
    Ok(Some(Located { path, address: Some(address), why: why.clone(), exists: true }))
}

#[cfg(not(feature = "etcd"))]
fn at_etcd(_named: &Path, option: &str, _why: &Why) -> Result<Option<Located>> {
    Err(Error::usage(format!("{option} is an address of etcd, and this build has no etcd"))
        .hint("build claim with --features etcd, or give the path of a folder"))
}

fn scheme(named: &OsStr) -> Option<&str> {
    let bytes = named.as_bytes();
    let end = bytes.windows(3).position(|window| window == b"://")?;
    let scheme = std::str::from_utf8(&bytes[..end]).ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    (scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(plain))
        .then_some(scheme)
}

/// `named` from `cwd`, its parent made free of symbolic links and of `..`.
fn resolve(named: &Path, cwd: &Path, parent: Parent) -> Result<PathBuf> {
    let full = path::absolute(cwd.join(named)).map_err(|error| Error::io("resolve", named, error))?;
    let (folder, name) = match (full.parent(), full.file_name()) {
        (Some(folder), Some(name)) => (folder, name),
        // `/` or `…/..`, which names no entry of its parent.
        _ => (full.as_path(), OsStr::new("")),
    };
    match fs::canonicalize(folder) {
        Ok(folder) if name.is_empty() => Ok(folder),
        Ok(folder) if folder.is_dir() => Ok(folder.join(name)),
        Ok(folder) => Err(not_a_folder(&full, &folder)),
        Err(error) if !is_absence(&error) => Err(Error::io("look at", folder, error)),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Err(not_a_folder(&full, folder)),
        Err(_) if parent == Parent::MayBeMissing => Ok(full.components().collect()),
        Err(_) => Err(Error::new(
            Code::NoStore,
            format!("no claim directory at {}: the folder {} is missing", full.display(), folder.display()),
        )
        .hint(format!("`claim init --dir {}` makes it with its parents", quoted(named)))),
    }
}

fn not_a_folder(path: &Path, folder: &Path) -> Error {
    let message = format!("no claim directory at {}: {} is not a folder", path.display(), folder.display());
    Error::new(Code::NoStore, message).hint("name a folder with --dir or CLAIMS_DIR")
}

/// `path` as one word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |char: char| char.is_alphanumeric() || "/._-+,:@%=".contains(char);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
