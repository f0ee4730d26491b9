//! A value being read.

use std::io::{self, Cursor, Read};

use serde_json::Value;

use crate::domain::Blob;
use crate::error::{Code, Error, Result};

/// How much is read at a time.
const PIECE: usize = 64 << 10;

/// An input or a result that is read piece by piece. That it came back whole and unchanged is known at its end: where it
/// did not, reading fails there.
pub struct Opened {
    from: Box<dyn Read + Send>,
    is_json: bool,
    bytes: u64,
    /// What is to come back, and what has, for a blob.
    expected: Option<(blake3::Hasher, String)>,
    seen: u64,
    place: String,
}

impl Opened {
    /// A value that stands in its record.
    pub(super) fn of(value: &Value) -> Opened {
        let text = value.to_string();
        let bytes = text.len() as u64;
        let from = Box::new(Cursor::new(text));
        Opened { from, is_json: true, bytes, expected: None, seen: 0, place: String::new() }
    }

    pub(super) fn blob(from: Box<dyn Read + Send>, blob: &Blob, place: String) -> Opened {
        let expected = Some((blake3::Hasher::new(), blob.hash.clone()));
        Opened { from, is_json: blob.json, bytes: blob.bytes, expected, seen: 0, place }
    }

    /// Is it JSON? Else it is text.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All of it as text, in pieces.
    pub fn texts(mut self, mut each: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = vec![0; PIECE];
        let mut kept = 0;
        loop {
            let room = buffer.get_mut(kept..).unwrap_or_default();
            let count = match self.read(room) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let piece = buffer.get(..kept + count).unwrap_or_default();
            let whole = whole(piece, count == 0)?;
            each(whole)?;
            if count == 0 {
                return Ok(());
            }
            let (from, to) = (whole.len(), kept + count);
            buffer.copy_within(from..to, 0);
            kept = to - from;
        }
    }

    /// Reads all of it, to know that it came back whole and unchanged ([`Code::RecordUnreadable`] if not).
    pub fn prove(mut self) -> Result<()> {
        let read = io::copy(&mut self, &mut io::sink());
        read.map(drop).map_err(|why| Error::new(Code::RecordUnreadable, why.to_string()))
    }

    /// The same bytes, which must be text.
    pub(super) fn checked(self) -> impl Read {
        Checked { from: self, cut: Vec::new() }
    }

    /// At its end: did all come back?
    fn verify(&mut self) -> io::Result<()> {
        match self.expected.take() {
            Some((hasher, expected))
                if self.seen != self.bytes || hasher.finalize().to_hex().as_str() != expected =>
            {
                let what = format!("{} is not what was recorded: it was changed from outside", self.place);
                Err(io::Error::new(io::ErrorKind::InvalidData, what))
            }
            _ => Ok(()),
        }
    }
}

impl Read for Opened {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.seen += count as u64;
        if let Some((hasher, _)) = &mut self.expected {
            hasher.update(buffer.get(..count).unwrap_or_default());
        }
        if count == 0 && !buffer.is_empty() {
            self.verify()?;
        }
        Ok(count)
    }
}

/// Bytes that must be text.
struct Checked {
    from: Opened,
    /// A character of which only the beginning has come.
    cut: Vec<u8>,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.cut.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let length = whole(&self.cut, count == 0)?.len();
        self.cut.drain(..length);
        Ok(count)
    }
}

/// The text that `bytes` are, but for a last character that is cut off unless they end here.
fn whole(bytes: &[u8], ends: bool) -> io::Result<&str> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let valid = bytes.get(..error.valid_up_to()).map(std::str::from_utf8);
    match valid {
        Some(Ok(text)) if error.error_len().is_none() && !ends => Ok(text),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &[u8]) -> io::Result<String> {
        let from = Box::new(Cursor::new(bytes.to_vec()));
        let opened = Opened { from, is_json: false, bytes: 0, expected: None, seen: 0, place: String::new() };
        let mut all = String::new();
        opened.texts(|piece| {
            all.push_str(piece);
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn text_is_cut_between_characters_only() {
        let long = format!("a{}", "€".repeat(PIECE));
        assert_eq!(texts(long.as_bytes()).unwrap(), long);
        assert!(texts(&long.as_bytes()[..long.len() - 1]).is_err());
        assert!(texts(&[&b"x".repeat(PIECE)[..], &[0xff]].concat()).is_err());
        assert_eq!(texts(b"").unwrap(), "");
    }
}
