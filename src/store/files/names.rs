//! Ids and file names.
//!
//! `/` separates folders. Every byte outside `A-Z a-z 0-9 . _ - : @ + =` is written `%XX`, and so are the dot
//! that begins a part (no `..`, nothing hidden, never `.store`) and the dot of a folder's trailing `.claim` in
//! any case (never a node's file). A part too long for a file name continues in a folder: each piece but the
//! last ends in a bare `%`, which no encoded byte does. So every name reads back as the one id it came from.

use crate::id::NodeId;
use crate::store::Key;

/// The ending of a node's file.
pub(super) const SUFFIX: &str = ".claim";

/// File names have at most 255 bytes on Linux; the suffix and the mark of a continuation must fit too.
const PIECE: usize = 240;

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// The ending of a folder's name in which a part goes on.
const CONTINUED: char = '%';

/// The file of node `id`, relative to the claim directory.
pub(super) fn node_path(id: &NodeId) -> String {
    let mut path = path_of(id);
    path.push_str(SUFFIX);
    path
}

/// The file of an internal key, relative to the store's own folder.
pub(super) fn internal_path(name: &NodeId) -> String {
    path_of(name)
}

/// The folder of the nodes below `name`, relative to the claim directory; `None` if no node can be below it.
pub(super) fn node_folder(name: &str) -> Option<String> {
    folder_of(&NodeId::new(format!("{name}/x")).ok()?)
}

/// The folder of the internal keys below `name`, relative to the store's own folder; `None` if no key can be below it.
pub(super) fn internal_folder(name: &str) -> Option<String> {
    folder_of(&internal(format!("{name}/x"))?)
}

fn folder_of(inside: &NodeId) -> Option<String> {
    path_of(inside).strip_suffix("/x").map(str::to_owned)
}

/// What a file adds to the text of the folder that it is in.
pub(super) fn text_of_file(name: &str) -> Option<Vec<u8>> {
    decode(name)
}

/// What all keys in a folder have after the text of the folder that it is in. The pieces of a part that goes on
/// in the folder may be no text for themselves.
pub(super) fn text_of_folder(name: &str) -> Option<Vec<u8>> {
    if let Some(piece) = name.strip_suffix(CONTINUED) {
        return decode(piece);
    }
    let mut text = decode(name)?;
    text.push(b'/');
    Some(text)
}

/// The node whose file is at `path`; `None` if that is no node's.
pub(super) fn node_of(path: &str) -> Option<NodeId> {
    let id = NodeId::new(text_of(path.strip_suffix(SUFFIX)?)?).ok()?;
    (node_path(&id) == path).then_some(id)
}

/// The internal key at `path`.
pub(super) fn internal_of(path: &str) -> Option<NodeId> {
    let id = internal(text_of(path)?)?;
    (internal_path(&id) == path).then_some(id)
}

fn path_of(id: &NodeId) -> String {
    let mut path = String::with_capacity(id.as_str().len() + 16);
    let mut parts = id.as_str().split('/').peekable();
    while let Some(part) = parts.next() {
        let is_folder = parts.peek().is_some();
        push_part(&mut path, part, is_folder);
        if is_folder {
            path.push('/');
        }
    }
    path
}

/// Adds a part as it is written, in pieces where it is long.
fn push_part(path: &mut String, part: &str, is_folder: bool) {
    let claim_dot = part.len().checked_sub(SUFFIX.len());
    let claim_dot =
        claim_dot.filter(|at| is_folder && part.as_bytes()[*at..].eq_ignore_ascii_case(SUFFIX.as_bytes()));
    let mut length = 0;
    for (at, byte) in part.bytes().enumerate() {
        let is_plain = match byte {
            b'.' => at != 0 && Some(at) != claim_dot,
            b'_' | b'-' | b':' | b'@' | b'+' | b'=' => true,
            _ => byte.is_ascii_alphanumeric(),
        };
        if length + if is_plain { 1 } else { 3 } > PIECE {
            path.push_str("%/");
            length = 0;
        }
        // A continuation must not read as `.`, `..` or a hidden file either.
        if is_plain && !(length == 0 && byte == b'.') {
            path.push(char::from(byte));
            length += 1;
        } else {
            path.push('%');
            path.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
            length += 3;
        }
    }
}

fn internal(name: String) -> Option<NodeId> {
    NodeId::within(name, Key::MAX_INTERNAL_BYTES).ok()
}

/// What a path says, decoded.
fn text_of(path: &str) -> Option<String> {
    if !path.contains('%') {
        return Some(path.to_owned());
    }
    String::from_utf8(decode(&path.replace("%/", ""))?).ok()
}

fn decode(written: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%' {
            let (hex, tail) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            rest = tail;
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn path(id: &str) -> String {
        node_path(&NodeId::new(id).unwrap())
    }

    #[test]
    fn plain_ids_keep_their_names() {
        assert_eq!(path("parser"), "parser.claim");
        assert_eq!(path("build/parser"), "build/parser.claim");
        assert_eq!(path("company:acme"), "company:acme.claim");
    }

    #[test]
    fn distinct_ids_have_distinct_files_that_read_back() {
        let long = "x".repeat(1000);
        let longer = format!("{}/{}", "y".repeat(500), "%".repeat(500));
        let ids = [
            "a/b",
            "a-b",
            "a\\b",
            "a_b",
            "a%b",
            "a%2Fb",
            "a",
            "a.claim",
            "a.claim/b",
            "a.CLAIM/b",
            "a/b.claim",
            "..",
            "../a",
            ".store/format",
            ".store",
            ".",
            "a b",
            "ä",
            "A",
            "\0",
            "a\nb",
            "-",
            "%",
            "%/a",
            &long,
            &long[..241],
            &long[..240],
            &long[..239],
            &longer,
            &format!("{}.", &long[..240]),
            &format!("{}./b", &long[..240]),
            &format!("{}../b", &long[..240]),
            &format!("{}b", &long[..240]),
            &format!("{}.b/c", &long[..240]),
            &format!("{}.claim", &long[..240]),
            &format!("{}.claim/c", &long[..240]),
        ];
        let mut seen = HashMap::new();
        for id in ids {
            let path = path(id);
            assert_eq!(node_of(&path).as_ref().map(NodeId::as_str), Some(id), "{path}");
            assert!(!path.starts_with('.') && !path.contains("/."), "{path}");
            assert!(path.split('/').all(|part| part.len() <= 255), "{path}");
            assert!(seen.insert(path.clone(), id).is_none(), "{path}");
        }
    }

    #[test]
    fn the_parts_of_a_path_add_up_to_its_id() {
        let long = "x".repeat(239);
        let ids = ["a", "a b/ä/c.claim", "a.claim/%", &format!("{long}ää/y"), &format!("{long}xx")];
        for id in ids {
            let path = path(id);
            let (folders, file) = path.rsplit_once('/').unwrap_or(("", &path));
            let folders = folders.split('/').filter(|name| !name.is_empty());
            let mut text = folders.map(|name| text_of_folder(name).unwrap()).collect::<Vec<_>>().concat();
            text.extend(text_of_file(file.strip_suffix(SUFFIX).unwrap()).unwrap());
            assert_eq!(text, id.as_bytes(), "{path}");
        }
        assert_eq!((text_of_folder("%zz"), text_of_folder("a%4%"), text_of_file("a%")), (None, None, None));
    }

    #[test]
    fn a_folder_of_keys_is_found_by_its_name() {
        assert_eq!(node_folder("a b/c").as_deref(), Some("a%20b/c"));
        assert_eq!(node_folder("a.claim").as_deref(), Some("a%2Eclaim"));
        assert_eq!(internal_folder("..").as_deref(), Some("%2E."));
        let long = "x".repeat(1022);
        for nothing in ["", "/a", "a/", &format!("{long}x")] {
            assert_eq!(node_folder(nothing), None, "{nothing}");
        }
        assert!(node_folder(&long).is_some() && internal_folder(&format!("{long}x")).is_some());
    }

    #[test]
    fn other_files_are_no_nodes() {
        for path in [
            "a",
            "a.txt",
            "%zz.claim",
            "a%.claim",
            "%61.claim",
            ".a.claim",
            ".claim",
            "a//b.claim",
            "%FF.claim",
        ] {
            assert_eq!(node_of(path), None, "{path}");
        }
    }
}
