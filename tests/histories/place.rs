//! Where the claims are: the one spot to name an engine that processes can share.

use std::fmt;
use std::path::PathBuf;

use claimdir::Directory;
use claimdir::store::files::Options;

/// An engine and where it is, as text that goes to another process.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Files {
        path: PathBuf,
        sync: bool,
    },
    #[cfg(feature = "etcd")]
    Etcd {
        url: String,
    },
}

impl Place {
    pub(crate) fn open(&self) -> Directory {
        match self {
            Place::Files { path, sync } => {
                Directory::open_with(path, Options { sync: *sync, ..Options::default() }).unwrap()
            }
            #[cfg(feature = "etcd")]
            Place::Etcd { url } => {
                use claimdir::store::etcd::{Address, Options};
                // All workers are on one machine.
                let options = Options { max_skew: std::time::Duration::ZERO };
                Directory::open_etcd(&Address::parse(url).unwrap(), options).unwrap()
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Files { path, sync: true } => write!(f, "synced:{}", path.display()),
            Place::Files { path, sync: false } => write!(f, "unsynced:{}", path.display()),
            #[cfg(feature = "etcd")]
            Place::Etcd { url } => f.write_str(url),
        }
    }
}

impl From<&str> for Place {
    fn from(text: &str) -> Place {
        match text.split_once(':').unwrap() {
            ("synced", path) => Place::Files { path: path.into(), sync: true },
            ("unsynced", path) => Place::Files { path: path.into(), sync: false },
            #[cfg(feature = "etcd")]
            ("etcd", _) => Place::Etcd { url: text.to_owned() },
            (engine, _) => panic!("{engine:?} is no engine"),
        }
    }
}
