//! A swap and what goes with it.

use super::{Key, Replaced, Store};
use crate::error::Result;

/// What goes with a swap: see [`Store::replace_along`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Along {
    /// Hints that stand before the swap does, or with it.
    pub put: Vec<Key>,
    /// Lines of logs, each with its log's key: after the swap or with it.
    pub log: Vec<(Key, Vec<u8>)>,
    /// Hints to remove after that, or with it.
    pub remove: Vec<Key>,
}

/// [`Store::replace_along`] by one call after the other, `swap` among them.
pub(crate) fn one_by_one(
    store: &(impl Store + ?Sized),
    along: &Along,
    swap: impl FnOnce() -> Result<Replaced>,
) -> Result<Replaced> {
    let put = along.put.iter().try_for_each(|hint| store.hint(hint));
    let replaced = put.and_then(|()| swap());
    match &replaced {
        // What can't be done now, whoever meets the hint that is left does.
        Ok(Replaced::Done) => {
            along.log.iter().for_each(|(log, line)| drop(store.log(log, line)));
            along.remove.iter().for_each(|hint| drop(store.unhint(hint)));
        }
        Ok(Replaced::Unknown(_)) => {}
        // The names are known to nobody else.
        _ => along.put.iter().for_each(|hint| drop(store.unhint(hint))),
    }
    replaced
}

/// Replaces a cell, or makes it with its first contents.
pub(crate) fn swap(
    store: &(impl Store + ?Sized),
    key: &Key,
    expected: Option<&[u8]>,
    new: &[u8],
) -> Result<Replaced> {
    match expected {
        Some(expected) => store.replace(key, expected, new),
        None => match store.publish(key, new) {
            Ok(true) => Ok(Replaced::Done),
            Ok(false) => store.read(key).map(Replaced::Changed),
            Err(error) => Ok(Replaced::Unknown(error)),
        },
    }
}
