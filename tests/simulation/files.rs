//! The simulated disk as the engine's files: each call is one step or several, between which others run.

use std::hash::Hash;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use claimdir::store::files::{Entry, Files};

use super::disk::{Disk, hash_of};
use super::rules::{Call, Fault, Kind, STEP_MS};
use super::state::State;
use super::world::World;

/// The disk as process `me` reaches it.
pub struct SimFiles {
    pub world: Arc<World>,
    pub me: usize,
}

/// What a process that is dead gets to see on its way out.
fn gone() -> io::Error {
    io::Error::from_raw_os_error(EIO)
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

impl SimFiles {
    /// One step: the whole effect at once, or a fault.
    fn step<T: Hash>(
        &self,
        call: Call<'_>,
        effect: impl FnOnce(&mut State) -> Result<io::Result<T>, String>,
    ) -> io::Result<T> {
        let Some(mut state) = self.world.point(self.me, &call) else { return Err(gone()) };
        let fault = state.fault(self.me, &call);
        let done = match fault {
            Fault::EioBefore => Ok(Err(io::Error::from_raw_os_error(EIO))),
            Fault::NoSpace => Ok(Err(io::Error::from_raw_os_error(ENOSPC))),
            Fault::None | Fault::EioAfter => effect(&mut state),
        };
        let done = match done {
            Ok(done) => done,
            Err(violation) => {
                state.note(|| format!("{}: {call}", self.me));
                self.world.stop(state, violation);
                return Err(gone());
            }
        };
        let done = if fault == Fault::EioAfter { done.and(Err(gone())) } else { done };
        let told = done.as_ref().map_err(|e| e.kind());
        state.note(|| {
            format!("{}: {call}: {}", self.me, told.map_or_else(|e| e.to_string(), |_| "ok".to_owned()))
        });
        state.observe(self.me, hash_of(&told.map_err(|e| e as u32)));
        done
    }

    /// A step that changes names and nothing that the oracle looks at.
    fn change(
        &self,
        kind: Kind,
        path: &str,
        act: impl FnOnce(&mut State) -> io::Result<()>,
    ) -> io::Result<()> {
        self.step(Call::on(kind, path), |state| Ok(act(state)))
    }

    fn renamed(
        &self,
        from: &str,
        to: &str,
        rename: impl FnOnce(&mut Disk, &str, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        self.step(Call { kind: Kind::Rename, path: from, to }, |state| {
            let old = state.disk.read(to).map(<[u8]>::to_vec);
            let done = rename(&mut state.disk, from, to);
            if done.is_ok() {
                state.moved(self.me, from, to, old)?;
            }
            Ok(done)
        })
    }
}

impl Files for SimFiles {
    fn read(&self, path: &str, limit: usize) -> io::Result<Option<Vec<u8>>> {
        self.step(Call::on(Kind::Read, path), |state| {
            let bytes = state.disk.read(path).map(<[u8]>::to_vec);
            state.oracle.read(self.me, path, bytes.as_deref(), state.time.reading());
            Ok(Ok(bytes.filter(|bytes| bytes.len() <= limit)))
        })
    }

    fn create(&self, path: &str) -> io::Result<()> {
        self.change(Kind::Create, path, |state| state.disk.create(path))
    }

    fn write(&self, path: &str, bytes: &[u8], sync: bool) -> io::Result<()> {
        self.step(Call::on(Kind::Write, path), |state| {
            state.oracle.stage(self.me, path);
            let created = state.disk.create(path);
            if state.choices.is_search() {
                state.time.pass_ms(STEP_MS);
                return Ok(created.and_then(|()| state.disk.write(path, bytes)));
            }
            let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
            Ok(created.and_then(|()| state.disk.write(path, half)))
        })?;
        let filled = self
            .change(Kind::Fill, path, |state| state.disk.write(path, bytes))
            .and_then(|()| if sync { self.sync_file(path) } else { Ok(()) });
        if filled.is_err() {
            let _ = self.unlink(path);
        }
        // Whoever removed the name meanwhile did nothing to the descriptor that was written through.
        filled.or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.renamed(from, to, Disk::rename)
    }

    fn exchange(&self, from: &str, to: &str) -> io::Result<()> {
        self.renamed(from, to, Disk::exchange)
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.step(Call { kind: Kind::Link, path: from, to }, |state| {
            let done = state.disk.link(from, to);
            if done.is_ok() {
                state.moved(self.me, from, to, None)?;
            }
            Ok(done)
        })
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        self.step(Call::on(Kind::Unlink, path), |state| {
            if state.oracle.is_node(path) && state.disk.read(path).is_some() {
                return Err(format!("process {} removed the record {path}", self.me));
            }
            Ok(state.disk.unlink(path))
        })
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let mut entries: Vec<(u64, Entry)> = Vec::new();
        let mut salt = None;
        loop {
            // One name a step: what comes or goes meanwhile is seen or not, as the order has it.
            let next = self.step(Call::on(Kind::List, folder), |state| {
                let salt = *salt.get_or_insert_with(|| state.rules.salt ^ state.choices.pick_salt());
                if let Err(e) = state.disk.must_be_folder(folder) {
                    return Ok(Err(e));
                }
                let last = entries.last();
                let keyed = state.disk.entries_of(folder).map(|entry| (hash_of(&(salt, entry.0)), entry));
                let next = keyed.filter(|(key, _)| last.is_none_or(|(at, _)| key > at)).min();
                let entry = |(name, is_folder): (&str, bool)| Entry { name: name.to_owned(), is_folder };
                Ok(Ok(next.map(|(key, found)| (key, entry(found)))))
            })?;
            match next {
                Some(next) => entries.push(next),
                None => return Ok(entries.into_iter().map(|(_, entry)| entry).collect()),
            }
        }
    }

    fn make_folder(&self, folder: &str) -> io::Result<()> {
        self.change(Kind::MakeFolder, folder, |state| state.disk.make_folder(folder))
    }

    fn remove_folder(&self, folder: &str) -> io::Result<()> {
        self.change(Kind::RemoveFolder, folder, |state| state.disk.remove_folder(folder))
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.change(Kind::SyncFolder, folder, |state| state.disk.sync_folder(folder))
    }

    fn sync_file(&self, path: &str) -> io::Result<()> {
        self.change(Kind::SyncFile, path, |state| state.disk.sync_file(path))
    }

    fn walk(&self) -> io::Result<Vec<String>> {
        self.step(Call::on(Kind::Walk, ""), |state| Ok(Ok(state.disk.walk())))
    }

    fn reopen(&self) {}
}

impl State {
    /// A file got the name `to`. If that is a record's, the oracle judges.
    fn moved(&mut self, me: usize, from: &str, to: &str, old: Option<Vec<u8>>) -> Result<(), String> {
        if self.oracle.is_node(from) {
            return Err(format!("process {me} took the record {from} away"));
        }
        self.oracle.staged_as(me, from, to);
        if !self.oracle.is_node(to) {
            return Ok(());
        }
        let new = self.disk.read(to).unwrap_or_default();
        self.oracle.published(me, from, to, old.as_deref(), new, self.time.reading())
    }
}
