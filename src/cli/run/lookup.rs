//! Whether a command can be started, asked before anything is claimed, so that a typo claims nothing.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

/// Why `program` can't be started, if that is certain. Starting it decides.
pub(crate) fn missing(program: &OsStr) -> Option<Errno> {
    if program.as_bytes().contains(&b'/') {
        return unusable(Path::new(program));
    }
    if program.is_empty() {
        return Some(Errno::NOENT);
    }
    // Without a PATH the C library has a default of its own.
    let path = env::var_os("PATH")?;
    let mut answer = Errno::NOENT;
    for folder in env::split_paths(&path) {
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        match unusable(&folder.join(program)) {
            None => return None,
            Some(Errno::ACCESS) => answer = Errno::ACCESS,
            Some(_) => {}
        }
    }
    Some(answer)
}

fn unusable(file: &Path) -> Option<Errno> {
    if file.is_dir() {
        return Some(Errno::ACCESS);
    }
    match access(file, Access::EXEC_OK) {
        Err(why @ (Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)) => Some(why),
        _ => None,
    }
}
