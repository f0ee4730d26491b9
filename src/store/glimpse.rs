//! What stands below a folder, as of one moment.

use super::Key;

/// The first names below a folder, in order: enough to answer much that is asked of what is below it.
#[derive(Clone, Debug, Default)]
pub struct Glimpse {
    folder: String,
    names: Vec<String>,
    whole: bool,
}

impl Glimpse {
    /// `names` are the first ones of internal keys below `folder`, in order; `whole`: there are no more.
    pub fn new(folder: &str, names: Vec<String>, whole: bool) -> Glimpse {
        Glimpse { folder: folder.to_owned(), names, whole }
    }

    /// As [`Store::parts`](super::Store::parts), if that is known.
    pub(crate) fn parts(&self, folder: &str) -> Option<Vec<String>> {
        let (names, true) = self.below(folder)? else { return None };
        let part = |name: &String| name.get(folder.len() + 1..)?.split('/').next().map(str::to_owned);
        let mut parts: Vec<String> = names.iter().filter_map(part).collect();
        parts.sort_unstable();
        parts.dedup();
        Some(parts)
    }

    /// As [`Store::list`](super::Store::list), if that is known.
    pub(crate) fn list(&self, folder: &str, after: Option<&str>, limit: usize) -> Option<Vec<Key>> {
        let (names, all) = self.below(folder)?;
        let names = names.iter().filter(|name| after.is_none_or(|after| name.as_str() > after));
        let keys: Vec<Key> = names.take(limit).filter_map(|name| Key::internal(name.as_str()).ok()).collect();
        (all || keys.len() == limit).then_some(keys)
    }

    /// The names below `folder`, and whether they are all there are. `None`: it is elsewhere.
    fn below(&self, folder: &str) -> Option<(&[String], bool)> {
        let rest = folder.strip_prefix(&self.folder)?;
        if !rest.is_empty() && !rest.starts_with('/') {
            return None;
        }
        let (first, end) = (format!("{folder}/"), format!("{folder}0")); // the character after the slash
        let from = self.names.partition_point(|name| *name < first);
        let to = self.names.partition_point(|name| *name < end);
        Some((self.names.get(from..to)?, self.whole || to < self.names.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_it_knows_and_no_more() {
        let names = ["a/1/x/p", "a/1/x/q", "a/1/y/p", "a/2/x/p"].map(str::to_owned).to_vec();
        let listed = |glimpse: &Glimpse, folder: &str, after, limit| -> Option<Vec<String>> {
            let keys = glimpse.list(folder, after, limit)?;
            Some(keys.iter().map(|key| key.name().to_owned()).collect())
        };
        for whole in [true, false] {
            let glimpse = Glimpse::new("a", names.clone(), whole);
            assert_eq!(glimpse.parts("a/1"), Some(vec!["x".to_owned(), "y".to_owned()]));
            assert_eq!(glimpse.parts("a/0"), Some(vec![]));
            assert_eq!(glimpse.parts("a"), whole.then(|| vec!["1".to_owned(), "2".to_owned()]));
            assert_eq!(glimpse.parts("a/3"), whole.then(Vec::new));
            assert_eq!(listed(&glimpse, "a/1/x", Some("a/1/x/p"), 9), Some(vec!["a/1/x/q".to_owned()]));
            assert_eq!(listed(&glimpse, "a/2/x", None, 1), Some(vec!["a/2/x/p".to_owned()]));
            assert_eq!(listed(&glimpse, "a/2/x", None, 2).is_some(), whole);
            assert_eq!((glimpse.parts("b"), glimpse.parts("ab")), (None, None));
        }
    }
}
