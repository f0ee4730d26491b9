//! What may be recorded, checked piece by piece.

use std::io::{self, BufReader, Read};

use serde::de::IgnoredAny;

use super::Opened;
use crate::domain::MAX_DEPTH;
use crate::error::{Error, Result};

/// Refuses what is not JSON.
pub(super) fn json(opened: Opened) -> Result<()> {
    let within = Depth { from: opened.checked(), depth: 0, in_text: false, escaped: false };
    let checked: serde_json::Result<IgnoredAny> = serde_json::from_reader(BufReader::new(within));
    checked.map(drop).map_err(|e| refused("JSON", &e.to_string()))
}

/// Refuses what is not text.
pub(super) fn text(opened: Opened) -> Result<()> {
    opened.texts(|_| Ok(())).map_err(|e| refused("text", &e.to_string()))
}

pub(super) fn refused(what: &str, why: &str) -> Error {
    Error::usage(format!("what is to be recorded is not {what}: {why}; nothing was changed"))
}

/// JSON that is nested no deeper than others can read. Where it is no JSON it doesn't matter what this sees.
struct Depth<R> {
    from: R,
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl<R: Read> Read for Depth<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        for byte in buffer.iter().take(count) {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' => self.in_text = !self.in_text,
                b'[' | b'{' if !self.in_text => self.depth += 1,
                b']' | b'}' if !self.in_text => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if self.depth > MAX_DEPTH {
                return Err(io::Error::other(format!("it is nested more than {MAX_DEPTH} deep")));
            }
        }
        Ok(count)
    }
}
