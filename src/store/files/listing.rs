//! Listing: a walk in the order of the keys' names, into no folder that it need not look into.
//!
//! Encoding keeps no order, and a long part goes on in a folder. So what is still to be looked at waits in a heap,
//! ordered by the text with which every key in it begins. The first in order is taken out: a file is the next
//! key; a folder is listed, and its entries wait with the others. They begin as the folder does, so nothing that
//! was taken out before comes after any of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};

use super::{Entry, Files, layout, names};
use crate::id::NodeId;
use crate::store::{Key, Prefix};

/// A walk. It ends at nothing: a folder that can't be listed is an item too, and the others follow.
pub(super) struct Walk<'a, F> {
    files: &'a F,
    of_nodes: bool,
    after: Option<&'a [u8]>,
    waiting: BinaryHeap<Reverse<Waiting>>,
}

/// A file or a folder still to be looked at.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    text: Vec<u8>,
    path: String,
    is_folder: bool,
}

/// A folder that can't be listed.
pub(super) struct Unlisted {
    pub(super) path: String,
    pub(super) error: io::Error,
    text: Vec<u8>,
}

impl Unlisted {
    /// The folder as it stands in its nodes' ids. The claim directory itself has no id.
    pub(super) fn id(&self) -> Option<NodeId> {
        let text = String::from_utf8_lossy(&self.text);
        NodeId::new(text.strip_suffix('/').unwrap_or(&text)).ok()
    }
}

impl<'a, F: Files> Walk<'a, F> {
    pub(super) fn new(files: &'a F, prefix: &Prefix<'_>, after: Option<&'a str>) -> Walk<'a, F> {
        let (of_nodes, top) = match prefix {
            Prefix::Nodes => (true, Some((String::new(), Vec::new()))),
            Prefix::Below(name) => (true, names::node_folder(name).map(|path| (path, folder_text(name)))),
            Prefix::Internal(name) => {
                let folder = names::internal_folder(name);
                (false, folder.map(|folder| (layout::path(&folder), folder_text(name))))
            }
        };
        let mut walk = Walk { files, of_nodes, after: after.map(str::as_bytes), waiting: BinaryHeap::new() };
        if let Some((path, text)) = top {
            walk.look_at(Waiting { text, path, is_folder: true });
        }
        walk
    }

    /// Unless nothing in it comes after `after`.
    fn look_at(&mut self, it: Waiting) {
        let is_passed =
            |after: &[u8]| after >= it.text.as_slice() && !(it.is_folder && after.starts_with(&it.text));
        if !self.after.is_some_and(is_passed) {
            self.waiting.push(Reverse(it));
        }
    }

    /// The entry of `folder` as something to look at; `None` if it is no key and there can be none in it.
    fn waiting(&self, folder: &Waiting, Entry { name, is_folder }: &Entry) -> Option<Waiting> {
        if name.starts_with('.') {
            return None;
        }
        // A folder with a record's name is a key too: reading it will say what is wrong.
        let record = name.strip_suffix(names::SUFFIX).filter(|_| self.of_nodes);
        let (added, is_folder) = match record {
            Some(written) => (names::text_of_file(written)?, false),
            None if *is_folder => (names::text_of_folder(name)?, true),
            None if self.of_nodes => return None,
            None => (names::text_of_file(name)?, false),
        };
        let path = if folder.path.is_empty() { name.clone() } else { format!("{}/{name}", folder.path) };
        Some(Waiting { text: [folder.text.as_slice(), &added].concat(), path, is_folder })
    }

    /// All nodes in order, told of folders that can't be listed: without an order among what is still to be looked at,
    /// which costs more than putting all in order in the end.
    pub(super) fn nodes(files: &'a F, unlisted: &mut dyn FnMut(Unlisted)) -> Vec<NodeId> {
        let walk = Walk { files, of_nodes: true, after: None, waiting: BinaryHeap::new() };
        let mut folders = vec![Waiting { text: Vec::new(), path: String::new(), is_folder: true }];
        let mut ids = Vec::new();
        while let Some(folder) = folders.pop() {
            let entries = match files.list(&folder.path) {
                Ok(entries) => entries,
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    unlisted(Unlisted { path: folder.path, error, text: folder.text });
                    continue;
                }
            };
            for it in entries.iter().filter_map(|entry| walk.waiting(&folder, entry)) {
                if it.is_folder {
                    folders.push(it);
                } else {
                    ids.extend(names::node_of(&it.path));
                }
            }
        }
        ids.sort_unstable();
        ids
    }

    fn key(&self, path: &str) -> Option<Key> {
        if self.of_nodes {
            names::node_of(path).map(Key::Node)
        } else {
            layout::internal(path).and_then(names::internal_of).map(Key::Internal)
        }
    }
}

impl<F: Files> Iterator for Walk<'_, F> {
    type Item = Result<Key, Unlisted>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(Reverse(first)) = self.waiting.pop() {
            if !first.is_folder {
                match self.key(&first.path) {
                    Some(key) => return Some(Ok(key)),
                    None => continue,
                }
            }
            match self.files.list(&first.path) {
                Ok(entries) => {
                    for entry in entries {
                        if let Some(it) = self.waiting(&first, &entry) {
                            self.look_at(it);
                        }
                    }
                }
                // Removed, maybe since the folder above was listed.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(error) => return Some(Err(Unlisted { path: first.path, error, text: first.text })),
            }
        }
        None
    }
}

fn folder_text(name: &str) -> Vec<u8> {
    format!("{name}/").into_bytes()
}
