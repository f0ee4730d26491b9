//! Whether two claim directories are one, or stand one within the other.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::Located;

impl Located {
    /// Is it the same directory as `other`, or one of both within the other? Folders are known by what they are,
    /// however they are named; etcd by a host that both addresses name.
    pub fn overlaps(&self, other: &Located) -> bool {
        #[cfg(feature = "etcd")]
        match (&self.address, &other.address) {
            (Some(address), Some(other)) => return address.overlaps(other),
            (None, None) => {}
            _ => return false,
        }
        let (one, other) = (real_so_far(&self.path), real_so_far(&other.path));
        is_within(&one, &other) || is_within(&other, &one)
    }
}

/// The path without symbolic links and `..`, which need not exist yet: as it will be once its folders are made.
fn real_so_far(path: &Path) -> PathBuf {
    let mut at = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(at.pop()),
            component => at.push(component),
        }
        at = fs::canonicalize(&at).unwrap_or(at);
    }
    at
}

/// Nothing is within a folder that is not there.
fn is_within(inner: &Path, outer: &Path) -> bool {
    let Some(outer) = identity(outer) else { return false };
    inner.ancestors().any(|above| identity(above) == Some(outer))
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}
