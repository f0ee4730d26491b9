//! Looking at very many nodes: each record is read once, by several threads, and let go of before the next.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::Directory;
use super::look::{Seen, Unreadable};
use crate::domain::{Malformed, Node, Scope, decode, decode_brief};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::Key;

/// How many nodes a thread takes at once. Fewer than two such shares are looked at by one.
const SHARE: usize = 256;

/// More threads than this only wait for each other.
const MOST_THREADS: usize = 8;

/// How much of a record is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// All of it.
    Whole,
    /// What a list tells: a node may lack its input, result and their hashes, progress, attempts, notes and unknown
    /// fields. Several times as fast.
    Brief,
}

/// What [`Directory::survey`] found.
#[derive(Debug)]
pub struct Surveyed<T> {
    /// What was told of the nodes that somebody has owned or submitted, in order of their ids.
    pub found: Vec<T>,
    /// Those that can't be read; the others go on.
    pub unreadable: Vec<Unreadable>,
}

/// A share of the nodes, and what came of it.
type Done<T> = (usize, Surveyed<T>);

impl Directory {
    /// Tells `each` of all nodes, or of all in `scope`, in no order and from several threads at once, and keeps what it
    /// answers.
    pub fn survey<T: Send>(
        &self,
        scope: Option<&Scope>,
        detail: Detail,
        each: impl Fn(Node) -> Option<T> + Sync,
    ) -> Result<Surveyed<T>> {
        let mut unreadable = Vec::new();
        let ids = match scope {
            Some(scope) => self.ids_in(scope)?,
            None => self.store.nodes(&mut |id, error| unreadable.push(Unreadable { id, error }))?,
        };
        let mut done = self.shared_out(&ids, detail, &each);
        done.sort_unstable_by_key(|(share, _)| *share);
        let mut all = Surveyed { found: Vec::with_capacity(ids.len()), unreadable };
        for (_, of_share) in done {
            all.found.extend(of_share.found);
            all.unreadable.extend(of_share.unreadable);
        }
        Ok(all)
    }

    fn shared_out<T: Send>(
        &self,
        ids: &[NodeId],
        detail: Detail,
        each: &(impl Fn(Node) -> Option<T> + Sync),
    ) -> Vec<Done<T>> {
        let shares: Vec<&[NodeId]> = ids.chunks(SHARE).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done: Vec<Done<T>> = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(share) = shares.get(at) else { return done };
                done.push((at, self.look_at(share, detail, each)));
            }
        };
        if shares.len() < 2 {
            return work();
        }
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
        thread::scope(|scope| {
            // Where no thread is to be had, this one does it all.
            let others: Vec<_> = (1..threads.min(shares.len()))
                .filter_map(|_| {
                    thread::Builder::new().name("claim-look".to_owned()).spawn_scoped(scope, work).ok()
                })
                .collect();
            let mut done = work();
            for other in others {
                match other.join() {
                    Ok(more) => done.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            done
        })
    }

    fn look_at<T>(&self, ids: &[NodeId], detail: Detail, each: &impl Fn(Node) -> Option<T>) -> Surveyed<T> {
        let mut seen = Surveyed { found: Vec::with_capacity(ids.len()), unreadable: Vec::new() };
        for id in ids {
            match self.node_in(id, detail) {
                Ok(node) => seen.found.extend(node.and_then(each)),
                Err(error) => seen.unreadable.push(Unreadable { id: id.clone(), error }),
            }
        }
        seen
    }

    pub(super) fn node_in(&self, id: &NodeId, detail: Detail) -> Result<Option<Node>> {
        let decode: fn(&NodeId, &[u8]) -> Result<Node, Malformed> = match detail {
            Detail::Whole => decode,
            Detail::Brief => decode_brief,
        };
        let key = Key::Node(id.clone());
        match self.store.read(&key)? {
            Some(bytes) if !bytes.is_empty() => {
                decode(id, &bytes).map(Some).map_err(|why| self.unreadable(&key, &why))
            }
            _ => Ok(None),
        }
    }

    /// All nodes.
    pub fn list(&self) -> Result<Seen> {
        self.survey(None, Detail::Whole, Some).map(Seen::from)
    }

    /// The ids of all nodes, in order, past the folders that can't be read. No record is read.
    pub fn ids(&self) -> Result<Vec<NodeId>> {
        self.store.nodes(&mut |_, _| {})
    }

    /// All nodes of a scope. Writes nothing.
    pub fn list_scope(&self, scope: &Scope) -> Result<Seen> {
        self.survey(Some(scope), Detail::Whole, Some).map(Seen::from)
    }
}

impl From<Surveyed<Node>> for Seen {
    fn from(surveyed: Surveyed<Node>) -> Seen {
        Seen { nodes: surveyed.found, unreadable: surveyed.unreadable }
    }
}
