//! Inputs and results that are too large for a record, each in an entry of its own under `blobs/<node>/`.
//!
//! A blob is written first; then the swap of the record names it. Who loses that swap, or finds its answer there
//! already, removes its own blob; who is stopped in between leaves one that no record names. Whether any can still come
//! to name it is read off the record, and no clock is asked: a result's blob has the generation of its claim in its
//! name, and once that claim is not on the record any more, it never will be again. An input's blob is named with the
//! task, or never. Only an input's blob whose node is no task has to wait for its time.

mod check;
mod opened;
mod prune;

use std::io::{Cursor, Read};

use serde_json::Value;

use super::Directory;
use crate::domain::{
    self, Answer, Blob, Content, Ending, Node, Reason, Refusal, Step, Token, natural, of_natural,
};
use crate::error::{Code, Error, Result};
use crate::id::NodeId;
use crate::store::{Key, Measured};
pub use opened::Opened;

/// The folder of blobs.
const FOLDER: &str = "blobs";

/// Which of a node's values a blob is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Written at this moment, in milliseconds since 1970.
    Input(i64),
    /// Under this generation.
    Result(u64),
}

/// What bytes may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    /// JSON if they are JSON, else text.
    Any,
}

impl Part {
    fn name(self) -> String {
        match self {
            Part::Input(at_ms) => format!("input-{at_ms}"),
            Part::Result(generation) => format!("result-{generation}"),
        }
    }

    /// The node and the part that a blob's name says.
    fn of(key: &Key) -> Option<(NodeId, Part)> {
        let (folder, name) = key.name().strip_prefix(FOLDER)?.strip_prefix('/')?.split_once('/')?;
        let (part, _random) = name.rsplit_once('-')?;
        let part = match part.split_once('-')? {
            ("input", at_ms) => Part::Input(at_ms.parse().ok()?),
            ("result", generation) => Part::Result(generation.parse().ok()?),
            _ => return None,
        };
        Some((of_natural(folder)?, part))
    }
}

fn folder(id: &NodeId) -> String {
    format!("{FOLDER}/{}", natural(id))
}

/// The key of a blob of `id`. A record that names anything else was not written here.
fn key_of(id: &NodeId, blob: &Blob) -> Result<Key> {
    let key = Key::internal(blob.name.as_str())?;
    if Part::of(&key).is_some_and(|(of, _)| of == *id) {
        return Ok(key);
    }
    let message = format!("the record of {:?} names {:?}, which is no blob of it", id.as_str(), blob.name);
    Err(Error::new(Code::RecordUnreadable, message))
}

impl Directory {
    /// The part that the result of `id` will be. Who is to be refused whatever the result writes none.
    pub(super) fn result_part(&self, id: &NodeId, token: &Token) -> Result<Answer<Part>> {
        if self.receipt.is_some() {
            // It may have an answer also for a token that is stale by now.
            return Ok(Ok(Part::Result(self.node(id)?.map_or(0, |node| node.generation))));
        }
        let generation = self.update(id, |node, facts, _| domain::may_complete(node, facts, token))?;
        Ok(generation.map(Part::Result))
    }

    /// The part that an input will be.
    pub(super) fn input_part(&self) -> Result<Answer<Part>> {
        Ok(Ok(Part::Input(self.host.now().wall_ms)))
    }

    /// `value` as it is to be recorded; one that is too large is written down as a blob.
    pub(super) fn content(
        &self,
        id: &NodeId,
        value: &Value,
        part: impl FnOnce() -> Result<Answer<Part>>,
    ) -> Result<Answer<Content>> {
        domain::admit(value)?;
        let bytes = value.to_string();
        if bytes.len() <= Blob::MIN_BYTES {
            return Ok(Ok(Content::Value(value.clone())));
        }
        self.write_blob(id, part()?, Form::Json, &mut bytes.as_bytes())
    }

    /// What `from` gives to its end, as it is to be recorded.
    pub(super) fn content_from(
        &self,
        id: &NodeId,
        mut from: &mut dyn Read,
        form: Form,
        part: impl FnOnce() -> Result<Answer<Part>>,
    ) -> Result<Answer<Content>> {
        let unread = |e| Error::usage(format!("what is to be recorded can't be read: {e}"));
        let mut head = Vec::new();
        (&mut from).take(Blob::MIN_BYTES as u64 + 1).read_to_end(&mut head).map_err(unread)?;
        if head.len() > Blob::MIN_BYTES {
            return self.write_blob(id, part()?, form, &mut Cursor::new(head).chain(from));
        }
        let value = match serde_json::from_slice(&head) {
            Ok(value) => value,
            Err(why) if form == Form::Json => return Err(check::refused("JSON", &why.to_string())),
            Err(_) => {
                Value::String(String::from_utf8(head).map_err(|e| check::refused("text", &e.to_string()))?)
            }
        };
        domain::admit(&value)?;
        Ok(Ok(Content::Value(value)))
    }

    fn write_blob(
        &self,
        id: &NodeId,
        part: Answer<Part>,
        form: Form,
        from: &mut dyn Read,
    ) -> Result<Answer<Content>> {
        let part = match part {
            Ok(part) => part,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let name = format!("{}/{}-{:032x}", folder(id), part.name(), self.host.random()?);
        let key = Key::internal(name.as_str())?;
        let mut from = Measured::new(from, Blob::MAX_BYTES);
        if !self.store.publish_from(&key, &mut from)? {
            let place = self.store.place(Some(&key));
            return Err(Error::new(
                Code::Contended,
                format!("{place} is there already; nothing was changed"),
            ));
        }
        let streamed = from.streamed();
        let (bytes, hash) = (streamed.bytes, streamed.hash);
        let mut blob = Blob { name, bytes, hash, json: true, extra: Default::default() };
        let checked = match (self.checked(&key, &blob, check::json), form) {
            (Err(_), Form::Any) => {
                blob.json = false;
                self.checked(&key, &blob, check::text)
            }
            (checked, _) => checked,
        };
        if let Err(error) = checked {
            self.remove_blob(&key);
            return Err(error);
        }
        Ok(Ok(Content::Blob(blob)))
    }

    /// What was removed as left over meanwhile is not checked: the record will have the say.
    fn checked(&self, key: &Key, blob: &Blob, check: impl FnOnce(Opened) -> Result<()>) -> Result<()> {
        match self.store.open(key)? {
            Some(from) => check(Opened::blob(from, blob, self.store.place(Some(key)))),
            None => Ok(()),
        }
    }

    /// The step of a request with `content`: what was removed as left over, no record comes to name.
    pub(super) fn naming<T>(&self, content: &Content, step: Step<T>) -> Result<Option<Step<T>>> {
        if let (Content::Blob(blob), Some(_), Ok(_)) = (content, &step.write, &step.answer)
            && self.store.open(&Key::internal(blob.name.as_str())?)?.is_none()
        {
            let message = "it took so long that what was written was removed as left over";
            return Err(Error::new(Code::Contended, message).hint("try again; nothing was changed"));
        }
        Ok(Some(step))
    }

    /// Removes the blob just written if `answer` is not the record that names it. After an error it may be that the
    /// record does, and `prune` will find out.
    pub(super) fn unless_named<T>(
        &self,
        content: &Content,
        answer: Result<Answer<T>>,
        node: impl FnOnce(&T) -> &Node,
    ) -> Result<Answer<T>> {
        if let (Content::Blob(mine), Ok(answer)) = (content, &answer) {
            let is_mine = |blob: &Blob| blob.name == mine.name;
            let named = answer.as_ref().is_ok_and(|answer| node(answer).blobs().any(is_mine));
            if !named && let Ok(key) = Key::internal(mine.name.as_str()) {
                self.remove_blob(&key);
            }
        }
        answer
    }

    /// Removes the blobs of `before` that its successor `next`, which stands, names no more.
    pub(super) fn forget_blobs(&self, before: &Node, next: &Node) {
        for blob in before.blobs().filter(|blob| next.blobs().all(|kept| kept.name != blob.name)) {
            if let Ok(key) = key_of(&before.id, blob) {
                self.remove_blob(&key);
            }
        }
    }

    /// One that can't be removed is left over.
    fn remove_blob(&self, key: &Key) {
        let _ = self.store.unhint(key);
    }

    /// The result of `id`, to be read piece by piece, wherever it is kept.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Code::NotFound) if it was pruned.
    pub fn open_result(&self, id: &NodeId) -> Result<Answer<Opened>> {
        let node = match self.result(id, None)? {
            Ok(node) => node,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match node.outcome() {
            Some((Ending::Done, _)) if node.tombstoned => Err(pruned(id)),
            Some((Ending::Done, outcome)) => match &outcome.blob {
                Some(blob) => self.open_blob(&node, blob).map(Ok),
                None => Ok(Ok(Opened::of(&outcome.result))),
            },
            Some((ending, outcome)) => Ok(Err(Refusal::new(&node, Reason::ended(ending, outcome)))),
            None => Ok(Err(Refusal::not_found(id))),
        }
    }

    /// The input of a task, to be read piece by piece, wherever it is kept; `null` if it has none.
    pub fn open_input(&self, node: &Node) -> Result<Opened> {
        match &node.task {
            Some(task) => match &task.input_blob {
                Some(blob) => self.open_blob(node, blob),
                None => Ok(Opened::of(&task.input)),
            },
            None => Ok(Opened::of(&Value::Null)),
        }
    }

    /// A blob that the record `node` names.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Code::NotFound) if the record does so no more, [`RecordUnreadable`](Code::RecordUnreadable) if it does
    /// and there is no such blob.
    pub fn open_blob(&self, node: &Node, blob: &Blob) -> Result<Opened> {
        let key = key_of(&node.id, blob)?;
        match self.open_named(&key, blob) {
            Err(missing) => {
                let now = self.node(&node.id)?;
                let named = now.is_some_and(|now| now.blobs().any(|it| it.name == blob.name));
                Err(if named { missing } else { pruned(&node.id) })
            }
            opened => opened,
        }
    }

    fn open_named(&self, key: &Key, blob: &Blob) -> Result<Opened> {
        let place = self.store.place(Some(key));
        match self.store.open(key)? {
            Some(from) => Ok(Opened::blob(from, blob, place)),
            None => {
                Err(Error::new(Code::RecordUnreadable, format!("{place} is missing, and a record names it")))
            }
        }
    }

    /// Where a blob of `node` is; for people, and for programs that read it.
    pub fn blob_place(&self, node: &Node, blob: &Blob) -> Result<String> {
        Ok(self.store.place(Some(&key_of(&node.id, blob)?)))
    }
}

fn pruned(id: &NodeId) -> Error {
    Error::new(Code::NotFound, format!("what {:?} had was pruned", id.as_str()))
}
