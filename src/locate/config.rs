//! The few settings of a repository that decide where its main worktree is, and how names in it compare.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::git::no_store;
use super::present;
use crate::error::Result;

/// `core.bare`, `core.worktree`, `core.ignoreCase` and `extensions.worktreeConfig`; of several values the last one counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) bare: Option<bool>,
    pub(super) worktree: Option<PathBuf>,
    pub(super) ignore_case: bool,
    worktree_config: bool,
}

impl Settings {
    /// Reads `config` in the common git folder, and `config.worktree` where that extension is on.
    pub(super) fn read(common: &Path) -> Result<Settings> {
        let mut settings = Settings::default();
        settings.add(&common.join("config"))?;
        if settings.worktree_config {
            settings.add(&common.join("config.worktree"))?;
        }
        Ok(settings)
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let Some(text) = present(path, fs::read(path))? else { return Ok(()) };
        // Git stops at a line it can't read, too. Reading on might miss a setting and split the claims.
        self.parse(&text).map_err(|Bad { line }| {
            no_store(format!("{}, line {line}: not a git configuration", path.display()))
        })
    }

    fn parse(&mut self, text: &[u8]) -> Result<(), Bad> {
        let mut reader = Reader::new(text);
        while let Some((name, value)) = reader.next_setting()? {
            match (name.as_slice(), value) {
                (b"core.bare", value) => self.bare = Some(reader.boolean(value)?),
                (b"core.ignorecase", value) => self.ignore_case = reader.boolean(value)?,
                (b"extensions.worktreeconfig", value) => self.worktree_config = reader.boolean(value)?,
                (b"core.worktree", Some(path)) => self.worktree = Some(OsString::from_vec(path).into()),
                (b"core.worktree", None) => return reader.bad(),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A line that is no git configuration.
#[derive(Debug, PartialEq, Eq)]
struct Bad {
    line: usize,
}

/// A setting's full name, the section and key in lower case; no value where there is no `=`.
type Setting = (Vec<u8>, Option<Vec<u8>>);

/// Reads settings one by one, by the grammar in git-config(1) and, where that is silent, as git does.
struct Reader<'a> {
    text: &'a [u8],
    line: usize,
    /// The line that the setting or header being read starts on.
    start: usize,
    section: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8]) -> Reader<'a> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        Reader { text, line: 1, start: 1, section: Vec::new() }
    }

    fn bad<T>(&self) -> Result<T, Bad> {
        Err(Bad { line: self.start })
    }

    /// The next byte, `\r\n` being one. The end reads as a line's end: a last line needs none.
    fn next(&mut self) -> u8 {
        if self.text.starts_with(b"\r\n") {
            self.text = &self.text[1..];
        }
        let Some((&byte, rest)) = self.text.split_first() else { return b'\n' };
        self.text = rest;
        self.line += usize::from(byte == b'\n');
        byte
    }

    fn skip_line(&mut self) {
        while self.next() != b'\n' {}
    }

    fn next_setting(&mut self) -> Result<Option<Setting>, Bad> {
        while !self.text.is_empty() {
            self.start = self.line;
            match self.next() {
                byte if is_space(byte) => {}
                b'#' | b';' => self.skip_line(),
                b'[' => self.header()?,
                first if first.is_ascii_alphabetic() => return self.setting(first).map(Some),
                _ => return self.bad(),
            }
        }
        Ok(None)
    }

    /// `section]`, `section "subsection"]` or the old `section.subsection]`.
    fn header(&mut self) -> Result<(), Bad> {
        self.section.clear();
        loop {
            match self.next() {
                b']' if !self.section.is_empty() => break,
                b' ' | b'\t' | b'\r' => return self.subsection(),
                byte if is_key(byte) || byte == b'.' => self.section.push(byte.to_ascii_lowercase()),
                _ => return self.bad(),
            }
        }
        Ok(())
    }

    fn subsection(&mut self) -> Result<(), Bad> {
        let mut byte = self.next();
        while b" \t\r".contains(&byte) {
            byte = self.next();
        }
        if byte != b'"' {
            return self.bad();
        }
        self.section.push(b'.');
        loop {
            match self.next() {
                b'"' => break,
                b'\n' => return self.bad(),
                b'\\' => match self.next() {
                    b'\n' => return self.bad(),
                    byte => self.section.push(byte),
                },
                byte => self.section.push(byte),
            }
        }
        if self.next() == b']' { Ok(()) } else { self.bad() }
    }

    fn setting(&mut self, first: u8) -> Result<Setting, Bad> {
        let mut name = self.section.clone();
        name.extend([b'.', first.to_ascii_lowercase()]);
        let mut byte = self.next();
        while is_key(byte) {
            name.push(byte.to_ascii_lowercase());
            byte = self.next();
        }
        while byte == b' ' || byte == b'\t' {
            byte = self.next();
        }
        match byte {
            b'\n' => Ok((name, None)),
            b'=' => Ok((name, Some(self.value()?))),
            _ => self.bad(),
        }
    }

    /// The rest of the line, without the spaces around it, quotes and a comment.
    fn value(&mut self) -> Result<Vec<u8>, Bad> {
        let (mut value, mut quoted) = (Vec::new(), false);
        // How much of `value` stays if nothing but spaces follows.
        let mut kept = 0;
        loop {
            match self.next() {
                b'\n' if quoted => return self.bad(),
                b'\n' => break,
                byte if is_space(byte) && !quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                b'#' | b';' if !quoted => {
                    self.skip_line();
                    break;
                }
                b'"' => quoted = !quoted,
                b'\\' => match self.next() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return self.bad(),
                },
                byte => value.push(byte),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Ok(value)
    }

    fn boolean(&self, value: Option<Vec<u8>>) -> Result<bool, Bad> {
        let Some(value) = value else { return Ok(true) };
        match value.to_ascii_lowercase().as_slice() {
            b"true" | b"yes" | b"on" => Ok(true),
            b"" | b"false" | b"no" | b"off" => Ok(false),
            other => number(other).map_or_else(|| self.bad(), |number| Ok(number != 0)),
        }
    }
}

/// An integer as git spells it: decimal, octal or hexadecimal, with `k`, `m` or `g` behind it.
fn number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.strip_suffix(['k', 'm', 'g']).unwrap_or(text);
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None if digits.starts_with('0') => i64::from_str_radix(digits, 8).ok(),
        None => digits.parse().ok(),
    }
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn is_space(byte: u8) -> bool {
    b" \t\r\n".contains(&byte)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
