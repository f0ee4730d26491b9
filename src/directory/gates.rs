//! Who stopped a scope or a queue: one cell for each.

use super::Directory;
use super::roster::Change;
use crate::domain::hint::in_scope;
use crate::domain::{Gate, Gated, Halt, Moment, Name, Scope, WriteId, decode_gate, encode_gate};
use crate::error::{Code, Error, Result};
use crate::id::NodeId;
use crate::store::{Glimpse, Key, Prefix};

/// The folder of scopes.
const SCOPES: &str = "scopes";
/// The folder of queues.
const QUEUES: &str = "queues";

/// What can be stopped.
#[derive(Clone, Copy)]
pub(super) enum Gateway<'a> {
    Scope(&'a Scope),
    /// Of the tasks in this scope, or in none.
    Queue(&'a Name, Option<&'a Scope>),
}

impl Gateway<'_> {
    fn kind(self) -> Gated {
        match self {
            Gateway::Scope(_) => Gated::Scope,
            Gateway::Queue(..) => Gated::Queue,
        }
    }

    pub(super) fn key(self) -> Result<Key> {
        match self {
            Gateway::Scope(scope) => Key::internal(format!("{SCOPES}/{}", scope.part())),
            Gateway::Queue(queue, scope) => {
                Key::internal(format!("{QUEUES}/{}/{}", in_scope(scope), queue.part()))
            }
        }
    }

    fn is_of(self, gate: &Gate) -> bool {
        match self {
            Gateway::Scope(scope) => Scope::named(&gate.last.name) == *scope,
            Gateway::Queue(queue, scope) => {
                gate.last.name == *queue && gate.scope.as_deref() == scope.map(Scope::part)
            }
        }
    }
}

impl Directory {
    /// Who stopped it, if it is stopped.
    pub(super) fn halt(&self, of: Gateway<'_>) -> Result<Option<Halt>> {
        self.halt_in(of, None)
    }

    /// The same as of what was seen, if that was.
    pub(super) fn halt_in(&self, of: Gateway<'_>, seen: Option<&mut Glimpse>) -> Result<Option<Halt>> {
        let key = of.key()?;
        let bytes = match seen.and_then(|seen| seen.take_cell(&key)) {
            Some(bytes) => bytes,
            None => self.store.read(&key)?,
        };
        let Some(bytes) = bytes else { return Ok(None) };
        Ok(self.decode_gate(of, &key, &bytes)?.and_then(Gate::halt))
    }

    /// Who cancelled the scope that the node `id` is in, if it is in one and somebody has.
    pub(super) fn scope_halt(&self, id: &NodeId) -> Result<Option<Halt>> {
        Scope::of(id).map_or(Ok(None), |scope| self.halt(Gateway::Scope(&scope)))
    }

    /// Stops it, or lets it go on; what its record says then, and whether it said so already.
    pub(super) fn set_gate(
        &self,
        of: Gateway<'_>,
        name: &Name,
        is_open: bool,
        by: &str,
        reason: Option<&str>,
    ) -> Result<(Halt, bool)> {
        let key = of.key()?;
        let (halt, replay) = self.change(&key, |bytes| {
            let found = self.decode_gate(of, &key, bytes)?;
            let scope = match of {
                Gateway::Scope(_) => None,
                Gateway::Queue(_, scope) => scope.map(|scope| scope.part().to_owned()),
            };
            let (by, reason) = (by.to_owned(), reason.map(str::to_owned));
            let last = self.by_the_clock(|facts| Halt {
                name: name.clone(),
                by,
                reason,
                at: Moment::after(0, facts),
            });
            let gate = match found {
                Some(gate) if gate.is_open == is_open => return Ok(Change::Keep((gate.last, true))),
                None if is_open => return Ok(Change::Keep((last, true))),
                Some(gate) => Gate { version: gate.version + 1, is_open, last, ..gate },
                None => Gate { version: 1, scope, is_open, last, extra: Default::default() },
            };
            let bytes = encode_gate(of.kind(), &gate, WriteId::of(self.host.random()?));
            Ok(Change::Write(bytes, (gate.last, false)))
        })?;
        if replay && self.store.read(&key)?.is_some() {
            self.store.confirm(&key)?;
        }
        Ok((halt, replay))
    }

    fn decode_gate(&self, of: Gateway<'_>, key: &Key, bytes: &[u8]) -> Result<Option<Gate>> {
        let gate = decode_gate(of.kind(), bytes).map_err(|why| self.unreadable(key, &why))?;
        match gate {
            Some(gate) if !of.is_of(&gate) => {
                let place = self.store.place(Some(key));
                let message = format!("{place} is the record of another name, {}", gate.last.name);
                Err(Error::new(Code::RecordUnreadable, message))
            }
            gate => Ok(gate),
        }
    }

    /// What of these records can't be read, by key.
    pub(super) fn unreadable_gates(&self) -> Result<Vec<(Key, Error)>> {
        let mut found = Vec::new();
        for (folder, kind) in [(SCOPES, Gated::Scope), (QUEUES, Gated::Queue)] {
            for key in self.store.list(&Prefix::Internal(folder), None, usize::MAX)? {
                let read = self.store.read(&key).and_then(|bytes| {
                    let gate = decode_gate(kind, bytes.as_deref().unwrap_or_default());
                    gate.map_err(|why| self.unreadable(&key, &why))
                });
                if let Err(error) = read {
                    found.push((key, error));
                }
            }
        }
        Ok(found)
    }
}
