//! What several keys hold and what stands below several folders, as of one moment.

use std::collections::HashMap;

use super::{Key, LAST};

/// The beginning of a list of internal keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Below which folder.
    pub folder: String,
    /// Only those whose names come after this one.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl Stretch {
    /// The first names below `folder`.
    pub(crate) fn of(folder: &str, limit: usize) -> Stretch {
        Stretch { folder: folder.to_owned(), after: None, limit }
    }

    /// Those after all that is below `passed`, which is below `folder` itself.
    pub(crate) fn past(folder: &str, passed: &str, limit: usize) -> Stretch {
        Stretch { after: Some(format!("{passed}/{LAST}")), ..Stretch::of(folder, limit) }
    }
}

/// What was seen at once: enough to answer much that is asked of what is there.
#[derive(Clone, Debug, Default)]
pub struct Glimpse {
    cells: HashMap<Key, Option<Vec<u8>>>,
    known: Vec<Known>,
}

/// All names from one text on to another are known.
#[derive(Clone, Debug)]
struct Known {
    /// Nothing is known of this text itself.
    after: String,
    /// Up to this text, which is known.
    to: String,
    names: Vec<String>,
}

impl Glimpse {
    /// A cell, or that there is none.
    pub fn add_cell(&mut self, key: Key, bytes: Option<Vec<u8>>) {
        self.cells.insert(key, bytes);
    }

    /// The first names of a list, in order; `whole`: there are no more.
    pub fn add_names(&mut self, list: &Stretch, names: Vec<String>, whole: bool) {
        let start = format!("{}/", list.folder);
        let after = list.after.clone().filter(|after| *after > start).unwrap_or(start);
        let to = match names.last() {
            Some(last) if !whole => last.clone(),
            _ if whole => end_of(&list.folder),
            _ => return,
        };
        self.known.push(Known { after, to, names });
    }

    /// What was seen after that.
    pub(crate) fn extend(&mut self, other: Glimpse) {
        self.cells.extend(other.cells);
        self.known.extend(other.known);
    }

    /// What a cell held, `Some(None)` if there was none; `None` if that is not known. It is told once: who asks again
    /// wants to know what is there now.
    pub(crate) fn take_cell(&mut self, key: &Key) -> Option<Option<Vec<u8>>> {
        self.cells.remove(key)
    }

    /// As [`Store::parts`](super::Store::parts), if that is known.
    pub(crate) fn parts(&self, folder: &str) -> Option<Vec<String>> {
        let (mut parts, end) = (Vec::new(), end_of(folder));
        let mut after = format!("{folder}/");
        while let Some(name) = self.next(&after, &end)? {
            let part = name.get(folder.len() + 1..)?.split('/').next()?.to_owned();
            after = format!("{folder}/{part}/{LAST}");
            parts.push(part);
        }
        parts.sort_unstable();
        Some(parts)
    }

    /// As [`Store::list`](super::Store::list), if that is known.
    pub(crate) fn list(&self, folder: &str, after: Option<&str>, limit: usize) -> Option<Vec<Key>> {
        let (keys, ended) = self.page(folder, after, limit)?;
        (ended || keys.len() == limit).then_some(keys)
    }

    /// As much of that as is known, and whether it is all there is. `None`: nothing is.
    pub(crate) fn page(&self, folder: &str, after: Option<&str>, limit: usize) -> Option<(Vec<Key>, bool)> {
        let (mut keys, end) = (Vec::new(), end_of(folder));
        let start = format!("{folder}/");
        let mut after = after.filter(|after| **after > *start).unwrap_or(&start);
        while keys.len() < limit {
            match self.next(after, &end) {
                Some(Some(name)) => {
                    keys.push(Key::internal(name).ok()?);
                    after = name;
                }
                Some(None) => return Some((keys, true)),
                None if keys.is_empty() => return None,
                None => break,
            }
        }
        Some((keys, false))
    }

    /// The first name after `after` and before `end`, if that is known.
    fn next(&self, after: &str, end: &str) -> Option<Option<&str>> {
        let covers = |known: &&Known| *known.after <= *after && *after < *known.to;
        let known = self.known.iter().find(covers)?;
        let at = known.names.partition_point(|name| **name <= *after);
        match known.names.get(at).filter(|name| ***name < *end) {
            Some(name) => Some(Some(name)),
            None => (*known.to >= *end).then_some(None),
        }
    }
}

/// The first text after all that is below `folder`: with the character after the slash.
fn end_of(folder: &str) -> String {
    format!("{folder}0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lists: &[(&str, Option<&str>, &[&str], bool)]) -> Glimpse {
        let mut glimpse = Glimpse::default();
        for (folder, after, names, whole) in lists {
            let list =
                Stretch { folder: (*folder).into(), after: after.map(str::to_owned), limit: names.len() };
            glimpse.add_names(&list, names.iter().map(|name| (*name).to_owned()).collect(), *whole);
        }
        glimpse
    }

    fn listed(glimpse: &Glimpse, folder: &str, after: Option<&str>, limit: usize) -> Option<Vec<String>> {
        let keys = glimpse.list(folder, after, limit)?;
        Some(keys.iter().map(|key| key.name().to_owned()).collect())
    }

    #[test]
    fn tells_what_it_knows_and_no_more() {
        let names = ["a/1/x/p", "a/1/x/q", "a/1/y/p", "a/2/x/p"];
        for whole in [true, false] {
            let glimpse = seen(&[("a", None, &names, whole)]);
            assert_eq!(glimpse.parts("a/1"), Some(vec!["x".to_owned(), "y".to_owned()]));
            assert_eq!(glimpse.parts("a/0"), Some(vec![]));
            assert_eq!(glimpse.parts("a"), whole.then(|| vec!["1".to_owned(), "2".to_owned()]));
            assert_eq!(glimpse.parts("a/3"), whole.then(Vec::new));
            assert_eq!(listed(&glimpse, "a/1/x", Some("a/1/x/p"), 9), Some(vec!["a/1/x/q".to_owned()]));
            assert_eq!(listed(&glimpse, "a/2/x", None, 1), Some(vec!["a/2/x/p".to_owned()]));
            assert_eq!(listed(&glimpse, "a/2/x", None, 2).is_some(), whole);
            assert_eq!((glimpse.parts("b"), glimpse.parts("ab")), (None, None));
        }
        assert_eq!(seen(&[("a", None, &[], false)]).parts("a"), None);
    }

    #[test]
    fn parts_are_known_where_what_is_left_out_has_the_same() {
        let last = format!("a/x/{LAST}");
        let first = ("a", None, &["a/x/1", "a/x/2"][..], false);
        let rest = ("a", Some(last.as_str()), &["a/y/1"][..], true);
        assert_eq!(seen(&[first, rest]).parts("a"), Some(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(seen(&[first]).parts("a"), None);
        assert_eq!(seen(&[rest]).parts("a"), None);
        assert_eq!(listed(&seen(&[first, rest]), "a/x", None, 3), None, "what is left out is not known");
        assert_eq!(listed(&seen(&[first, rest]), "a/y", None, 3), Some(vec!["a/y/1".to_owned()]));
        let page =
            |after| seen(&[first, rest]).page("a/x", after, 9).map(|(keys, ended)| (keys.len(), ended));
        assert_eq!(
            (page(None), page(Some("a/x/1")), page(Some("a/x/2"))),
            (Some((2, false)), Some((1, false)), None)
        );
    }

    #[test]
    fn a_cell_is_told_once() {
        let key = Key::internal("a/b").unwrap();
        let mut glimpse = Glimpse::default();
        glimpse.add_cell(key.clone(), None);
        assert_eq!((glimpse.take_cell(&key), glimpse.take_cell(&key)), (Some(None), None));
    }
}
