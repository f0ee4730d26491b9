//! Paths that a claim reserves, and which of them clash.

use std::fmt;

use crate::error::{Code, Error, Result};

/// The longest path, in bytes.
const MAX_BYTES: usize = 4096;

/// A path relative to the repository's root, without `.`, `..` and empty parts; `.` is the root itself.
///
/// It stands for the file or folder and everything below, and need not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepoPath(String);

impl RepoPath {
    /// Takes `text`, relative to the root. A trailing `/**` means the folder; any other pattern is refused
    /// ([`Code::InvalidPath`]), and so is a path that leads out of the root.
    pub fn new(text: &str) -> Result<RepoPath> {
        let text = without_stars(text);
        refuse_pattern(text)?;
        RepoPath::literal(text)
    }

    /// The same where every character stands for itself.
    pub fn literal(text: &str) -> Result<RepoPath> {
        if text.is_empty() {
            return Err(invalid("it is empty; the root is `.`"));
        }
        if text.starts_with('/') {
            return Err(invalid(&format!("{text:?} is not relative to the root")));
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.pop().is_none() => return Err(outside(text)),
                ".." => {}
                part => parts.push(part),
            }
        }
        let path = if parts.is_empty() { ROOT.to_owned() } else { parts.join("/") };
        if path.len() > MAX_BYTES {
            return Err(invalid(&format!("it has {} bytes, and {MAX_BYTES} are the most", path.len())));
        }
        Ok(RepoPath(path))
    }

    /// A path as a record says it; `None` if it is not in normal form.
    pub(in crate::domain) fn recorded(text: String) -> Option<RepoPath> {
        let normal = text == ROOT || !text.split('/').any(|part| matches!(part, "" | "." | ".."));
        (normal && text.len() <= MAX_BYTES).then_some(RepoPath(text))
    }

    /// The path where names that differ in case only are one.
    pub fn folded(&self) -> RepoPath {
        RepoPath(self.0.to_lowercase())
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Is `other` this path or below it?
    pub fn covers(&self, other: &RepoPath) -> bool {
        let rest = other.0.strip_prefix(self.0.as_str());
        self.0 == ROOT || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// It and every folder above it, up to the root.
    pub(crate) fn with_those_above(&self) -> impl Iterator<Item = &str> {
        let folders = self.0.rmatch_indices('/').map(|(at, _)| &self.0[..at]);
        let root = Some(ROOT).filter(|root| self.0 != *root);
        std::iter::once(self.as_str()).chain(folders).chain(root)
    }

    /// Can't both be reserved by different nodes: the same, or one above the other.
    pub fn clashes(&self, other: &RepoPath) -> bool {
        self.covers(other) || other.covers(self)
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const ROOT: &str = ".";

/// The characters that make a path a pattern.
const GLOBS: [char; 3] = ['*', '?', '['];

pub(crate) fn refuse_pattern(text: &str) -> Result<()> {
    let Some(glob) = text.chars().find(|c| GLOBS.contains(c)) else { return Ok(()) };
    let why = format!("{text:?} is a pattern ({glob:?}), and only a trailing /** is understood");
    Err(invalid(&why).hint("name each file, or the folder they are in"))
}

/// The folder that `folder/**` means.
pub(crate) fn without_stars(text: &str) -> &str {
    text.strip_suffix("/**").map_or(text, |folder| if folder.is_empty() { "/" } else { folder })
}

pub(crate) fn invalid(why: &str) -> Error {
    Error::new(Code::InvalidPath, format!("not a path that can be reserved: {why}"))
}

pub(crate) fn outside(text: &str) -> Error {
    invalid(&format!("{text:?} leads out of the root"))
        .hint("paths are relative to the current folder, and must stay within the worktree")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        RepoPath::new(text).unwrap()
    }

    #[test]
    fn has_one_form() {
        for (text, normal) in [
            ("src/a", "src/a"),
            ("./src//a/", "src/a"),
            ("src/./b/../a", "src/a"),
            ("src/**", "src"),
            ("./**", "."),
            ("a/..", "."),
            (".", "."),
            ("...", "..."),
            (".hidden", ".hidden"),
        ] {
            assert_eq!(path(text).as_str(), normal, "{text}");
            assert_eq!(RepoPath::recorded(normal.to_owned()), Some(path(text)));
        }
    }

    #[test]
    fn refuses_what_is_no_path_below_the_root() {
        let long = "x".repeat(MAX_BYTES + 1);
        for text in ["", "..", "a/../..", "/etc", "/**", "*", "**", "src/*.rs", "a/**/b", "a?", "[ab]", &long]
        {
            assert_eq!(RepoPath::new(text).map_err(|e| e.code()), Err(Code::InvalidPath), "{text:?}");
        }
        for text in ["", "/a", "a/", "a//b", "./a", "a/../b", "..", &long] {
            assert_eq!(RepoPath::recorded(text.to_owned()), None, "{text:?}");
        }
        assert!(RepoPath::literal("app/[id]/page").is_ok());
    }

    #[test]
    fn clashes_with_itself_what_is_above_and_what_is_below() {
        let clash = |a: &str, b: &str| {
            assert_eq!(path(a).clashes(&path(b)), path(b).clashes(&path(a)));
            path(a).clashes(&path(b))
        };
        for (a, b) in [("src", "src"), ("src", "src/a"), ("src", "src/a/b"), (".", "src"), (".", ".")] {
            assert!(clash(a, b), "{a} {b}");
        }
        for (a, b) in [("src/a", "src/b"), ("src/a", "src/ab"), ("src", "src.rs"), ("a", "A"), ("a/b", "b")] {
            assert!(!clash(a, b), "{a} {b}");
        }
        assert!(path("a").clashes(&path("A/b").folded()));
    }
}
