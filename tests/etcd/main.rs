//! Claims on a real etcd: the same commands, records, exit codes and JSON.

#![allow(unreachable_pub, reason = "modules of one program")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

#[path = "../support/mod.rs"]
mod support;

mod access;
mod commands;
mod copy;
mod edges;
mod engine;
mod faults;
mod journal;
mod place;
mod proxy;
mod requests;
mod server;
mod unknown;

use std::process::Command;

use server::Cluster;
use support::{Claimed, Refused, Said, World, said};

/// A scratch folder and a directory on etcd, which every command names.
struct Remote {
    world: World,
    url: String,
}

impl Remote {
    fn on(cluster: &Cluster, prefix: &str) -> Remote {
        Remote::at(cluster.url(prefix))
    }

    fn at(url: String) -> Remote {
        Remote { world: World::new(), url }
    }

    fn claim(&self) -> Command {
        let mut command = self.world.claim();
        command.env("CLAIMS_DIR", &self.url);
        command
    }

    #[track_caller]
    fn say(&self, line: &str) -> Said {
        said(self.claim().args(line.split_whitespace()))
    }

    #[track_caller]
    fn json(&self, line: &str) -> Said {
        self.say(&format!("{line} --json"))
    }

    #[track_caller]
    fn take(&self, line: &str) -> Claimed {
        self.json(&format!("acquire {line}")).expect(0)
    }

    #[track_caller]
    fn refused(&self, line: &str, exit: i32, code: &str) -> Refused {
        let refused: Refused = self.json(line).expect(exit);
        assert_eq!(refused.code, code, "{line}: {refused:?}");
        refused
    }
}
