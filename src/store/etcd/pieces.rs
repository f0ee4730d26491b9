//! What is too large for one request: pieces, and a header at the entry's own key.
//!
//! The header is there first and says that the entry is not whole; the write that says so comes last, when all pieces
//! are there. Who is stopped in between leaves an entry that nobody reads and that is removed like any other.

use std::io::{self, Read};
use std::sync::Arc;

use super::engine::Keys;
use super::kv::{self, Kv};
use crate::error::{Code, Error, Result};
use crate::store::{Key, Measured};

/// The most bytes that one request puts. Etcd takes 1.5 MiB in all, unless told otherwise.
pub(super) const MOST: usize = 1_400_000;
/// How many bytes a piece has, but for the last.
const PIECE: usize = 1 << 20;
/// How the value of an entry in pieces begins. An entry that begins so by itself is put in pieces, too.
const MARK: &[u8] = b"\0claim pieces\0";

/// What the value at an entry's own key is.
pub(super) enum Form {
    /// The entry.
    Whole(Vec<u8>),
    /// A header: so many pieces.
    Pieces(u64),
    /// A header of what is not whole yet.
    Unfinished,
}

pub(super) fn form_of(value: Vec<u8>) -> Form {
    let Some(says) = value.strip_prefix(MARK) else { return Form::Whole(value) };
    let count = std::str::from_utf8(says).ok().and_then(|says| says.strip_prefix("count=")?.parse().ok());
    count.map_or(Form::Unfinished, Form::Pieces)
}

/// May these bytes stand at an entry's own key?
pub(super) fn fits(bytes: &[u8]) -> bool {
    bytes.len() <= MOST && !bytes.starts_with(MARK)
}

/// An entry in pieces on its way into the store.
pub(super) struct Writer<'a> {
    pub(super) kv: &'a Kv,
    pub(super) keys: &'a Keys,
    pub(super) key: &'a Key,
    /// Tells this writer's header from another's.
    pub(super) random: u128,
}

impl Writer<'_> {
    /// Writes `start` and then what `from` gives. `false`: the name is taken.
    pub(super) fn write(&self, start: &[u8], from: &mut Measured<'_>) -> Result<bool> {
        let (name, open) =
            (self.keys.of(self.key), [MARK, format!("open={:032x}", self.random).as_bytes()].concat());
        let begun = self.kv.change(&[kv::is_absent(&name)], &[kv::put(&name, &open)], &[kv::get(&name)])?;
        if !begun.succeeded && begun.found.as_deref() != Some(&open[..]) {
            return Ok(false);
        }
        let written = self.write_pieces(start, from).and_then(|count| {
            let whole = [MARK, format!("count={count}").as_bytes()].concat();
            let then = [kv::put(&name, &whole)];
            let ended = self.kv.change(&[kv::has_value(&name, &open)], &then, &[kv::get(&name)])?;
            Ok(ended.succeeded || ended.found.as_deref() == Some(&whole[..]))
        });
        if !matches!(written, Ok(true)) {
            // Nobody was told its name; if somebody has removed it meanwhile, the pieces go too.
            let _ = self.kv.change(&[], &self.keys.removal(self.key), &[]);
        }
        written.map(|_| true)
    }

    fn write_pieces(&self, start: &[u8], from: &mut Measured<'_>) -> Result<u64> {
        let mut piece = start.to_vec();
        let mut count = 0;
        loop {
            let is_last = !fill(&mut piece, PIECE, from)?;
            let rest = piece.split_off(piece.len().min(PIECE));
            self.kv.change(&[], &[kv::put(&self.keys.piece(self.key, count), &piece)], &[])?;
            count += 1;
            piece = rest;
            if is_last && piece.is_empty() {
                return Ok(count);
            }
        }
    }
}

/// Reads on until there are more than `most` bytes. `false`: `from` has come to its end.
pub(super) fn fill(bytes: &mut Vec<u8>, most: usize, from: &mut Measured<'_>) -> Result<bool> {
    let room = (most + 1).saturating_sub(bytes.len());
    let read = from.by_ref().take(room as u64).read_to_end(bytes);
    read.map_err(|e| {
        from.failed().unwrap_or_else(|| Error::io("read", "what is to be recorded".as_ref(), e))
    })?;
    Ok(bytes.len() > most)
}

/// Reads an entry in pieces as it was at one revision, whatever becomes of it meanwhile.
pub(super) struct Reader {
    kv: Arc<Kv>,
    revision: i64,
    /// The keys of the pieces that are still to be read, the last one first.
    left: Vec<String>,
    piece: io::Cursor<Vec<u8>>,
}

impl Reader {
    pub(super) fn new(kv: Arc<Kv>, keys: &Keys, key: &Key, count: u64, revision: i64) -> Reader {
        let left = (0..count).rev().map(|number| keys.piece(key, number)).collect();
        Reader { kv, revision, left, piece: io::Cursor::default() }
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.piece.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(next) = self.left.pop() else { return Ok(0) };
            let read = self.kv.read_at(&next, self.revision).map_err(|e| io::Error::other(e.to_string()))?;
            let found = read.ok_or_else(|| io::Error::other(format!("the piece {next} is missing")))?;
            self.piece = io::Cursor::new(found.value);
        }
    }
}

/// All of an entry in pieces, which may have `most` bytes.
pub(super) fn read_whole(reader: Reader, most: usize, place: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = reader.take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|e| Error::new(Code::StoreUnavailable, format!("cannot read {place}: {e}")))?;
    if bytes.len() > most {
        let message = format!("{place} has more than the {most} bytes that are read at once");
        return Err(Error::new(Code::RecordUnreadable, message));
    }
    Ok(bytes)
}
