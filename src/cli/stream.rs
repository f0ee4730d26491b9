//! Values that are told piece by piece, since they are too large to be held.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};

use claimdir::Opened;
use serde_json::Value;
use serde_json::ser::Formatter;

use super::json::{self, Harmless};
use super::text::harmless;

/// How much is held at a time.
const PIECE: usize = 64 << 10;

/// The object, its last field `name` being this value, which is never held whole.
pub(super) fn object_with(mut object: Value, name: &str, value: Opened, out: File) -> io::Result<()> {
    if let Value::Object(fields) = &mut object {
        fields.shift_remove(name);
    }
    let line = json::line(&object);
    let mut out = BufWriter::with_capacity(PIECE, out);
    out.write_all(line.strip_suffix(b"}\n").unwrap_or_default())?; // it has fields
    write!(out, ",\"{name}\":")?;
    field(value, &mut out)?;
    out.write_all(b"}\n")?;
    out.flush()
}

/// The value as it is, unless a terminal would act on it.
pub(super) fn whole(mut value: Opened, out: File) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(PIECE, out);
    if out.get_ref().is_terminal() {
        let shown = |line: &str| harmless(line).into_owned();
        value.texts(|piece| {
            out.write_all(piece.split('\n').map(shown).collect::<Vec<_>>().join("\n").as_bytes())
        })?;
    } else {
        io::copy(&mut value, &mut out)?;
    }
    out.flush()
}

/// Writes a value into a line of JSON, piece by piece: JSON without line breaks, or text as a string.
fn field(value: Opened, to: &mut dyn Write) -> io::Result<()> {
    let is_json = value.is_json();
    if !is_json {
        to.write_all(b"\"")?;
    }
    value.texts(|piece| {
        if is_json {
            // Between the values only: within a string they are escaped.
            let piece = piece.replace(['\n', '\r', '\t'], " ");
            return Harmless.write_string_fragment(to, &piece);
        }
        let string = json::line(&Value::String(piece.to_owned()));
        to.write_all(string.get(1..string.len().saturating_sub(2)).unwrap_or_default())
    })?;
    if is_json { Ok(()) } else { to.write_all(b"\"") }
}
