//! JSON in arguments and in answers.

use std::fs::File;
use std::io::{self, Cursor, Read};

use claimdir::domain::Blob;
use claimdir::{Error, Result};
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use super::text;

/// The most bytes of JSON taken from an argument, a file or standard input.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// A JSON argument that may be large.
pub(crate) enum Argument {
    Value(Value),
    /// More than [`Blob::MIN_BYTES`], not looked at yet.
    Large(Box<dyn Read>),
}

/// The same for a value that may be large: one that is gets read where it is recorded.
pub(crate) fn large_argument(option: &str, text: &str) -> Result<Argument> {
    let (mut from, name): (Box<dyn Read>, _) = match text.strip_prefix('@') {
        Some(path) => (Box::new(open(option, path)?), path),
        None if text == "-" => (Box::new(io::stdin()), "standard input"),
        None => (Box::new(Cursor::new(text.to_owned())), "it"),
    };
    let most = Blob::MIN_BYTES as u64;
    let mut head = Vec::new();
    read((&mut from).take(most + 1), &mut head, option, name)?;
    if head.len() as u64 > most {
        return Ok(Argument::Large(Box::new(Cursor::new(head).chain(from))));
    }
    parse(option, name, &head).map(Argument::Value)
}

/// A JSON argument: literal, `@FILE`, or `-` for standard input.
pub(crate) fn argument(option: &str, text: &str) -> Result<Value> {
    let mut bytes = Vec::new();
    let source = match text.strip_prefix('@') {
        Some(path) => {
            read(open(option, path)?, &mut bytes, option, path)?;
            path
        }
        None if text == "-" => {
            read(io::stdin(), &mut bytes, option, "standard input")?;
            "standard input"
        }
        None => {
            bytes.extend_from_slice(text.as_bytes());
            "it"
        }
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::usage(format!("{option}: {source} has more than {MAX_BYTES} bytes")));
    }
    parse(option, source, &bytes)
}

fn open(option: &str, path: &str) -> Result<File> {
    File::open(path).map_err(|e| Error::usage(format!("{option}: cannot read {path}: {e}")))
}

fn parse(option: &str, source: &str, bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).map_err(|e| {
        Error::usage(format!("{option}: {source} is not JSON: {e}"))
            .hint("quote a plain string twice, as in '\"text\"'; @FILE reads a file, - standard input")
    })
}

fn read(from: impl Read, bytes: &mut Vec<u8>, option: &str, name: &str) -> Result<()> {
    let read = from.take(MAX_BYTES + 1).read_to_end(bytes);
    read.map(drop).map_err(|e| Error::usage(format!("{option}: cannot read {name}: {e}")))
}

/// One line of JSON that no terminal acts on, whatever is in its strings.
pub(crate) fn line(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    // Writing maps with text keys to memory can't fail.
    let _ = serde::Serialize::serialize(value, &mut Serializer::with_formatter(&mut bytes, Harmless));
    bytes.push(b'\n');
    bytes
}

/// Compact JSON that also escapes the characters that JSON allows and a terminal acts on.
pub(super) struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(text::is_harmful) {
            let (before, after) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut characters = after.chars();
            if let Some(harmful) = characters.next() {
                for unit in harmful.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_harmless_and_exact() {
        let value = Value::String("a\u{9b}b\u{e0001}\n\u{7f}ä".to_owned());
        let line = line(&value);
        assert!(line.is_ascii() || !String::from_utf8_lossy(&line).contains('\u{9b}'));
        assert_eq!(serde_json::from_slice::<Value>(&line).unwrap(), value);
    }
}
