//! Scopes: one run's keys apart from another's.

use std::fmt;

use super::record::Name;
use crate::error::Result;
use crate::id::NodeId;

/// What begins the ids of nodes in a scope.
const SIGN: char = '@';

/// How a name's part begins that is written as its hash, and how long that is.
const HASHED: &str = "%h";
const HASH_DIGITS: usize = 64;

/// A scope. The node `x` of the scope `s` has the id `@s/x`, with `%` and `/` in the name written `%25` and `%2F`, and
/// a name that gets longer than 400 bytes so written as its hash.
///
/// ```
/// use claimdir::{NodeId, Scope};
/// let nightly = Scope::new("ci/nightly")?;
/// let lint = nightly.id("lint")?;
/// assert_eq!(lint.as_str(), "@ci%2Fnightly/lint");
/// assert_eq!(nightly.id(lint.as_str())?, lint); // it names its scope already
/// assert_eq!(Scope::of(&lint), Some(nightly));
/// assert_eq!(Scope::of(&NodeId::new("lint")?), None);
/// # Ok::<(), claimdir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The name as it stands in ids.
    part: String,
}

impl Scope {
    /// The scope of this name: 1 to 256 bytes ([`Code::InvalidId`](crate::Code::InvalidId)).
    pub fn new(name: impl Into<String>) -> Result<Scope> {
        Name::new(name).map(|name| Scope::named(&name))
    }

    /// The scope of this name.
    pub fn named(name: &Name) -> Scope {
        Scope { part: name.part() }
    }

    /// The scope that an id is in, if it is in one.
    pub fn of(id: &NodeId) -> Option<Scope> {
        let (part, _) = id.as_str().strip_prefix(SIGN)?.split_once('/')?;
        is_part(part).then(|| Scope { part: part.to_owned() })
    }

    /// The id of the node `text` in this scope. One that names a scope already, this or another, is taken as it stands.
    pub fn id(&self, text: &str) -> Result<NodeId> {
        let id = NodeId::new(text)?;
        if Scope::of(&id).is_some() { Ok(id) } else { NodeId::new(format!("{}/{text}", self.folder())) }
    }

    /// The folder of its nodes.
    pub(crate) fn folder(&self) -> String {
        format!("{SIGN}{}", self.part)
    }

    /// The name as one part of a key.
    pub(crate) fn part(&self) -> &str {
        &self.part
    }
}

/// The name, as far as ids tell it.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&unescaped(&self.part))
    }
}

fn unescaped(part: &str) -> String {
    part.replace("%2F", "/").replace("%25", "%")
}

/// Is `part` how a scope's name is written?
fn is_part(part: &str) -> bool {
    if let Some(hash) = part.strip_prefix(HASHED) {
        return hash.len() == HASH_DIGITS
            && hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    }
    Name::new(unescaped(part)).is_ok_and(|name| name.part() == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_keeps_its_nodes_apart_and_is_told_by_their_ids() {
        let long = ["x".repeat(256), "/".repeat(256), "%".repeat(256), "%2F".repeat(60)];
        let names = ["s", "a/b", "a%2Fb", "a%b", "%", "%25", "%h", "@", "@s", ".", "..", " ", "ä\n"];
        let names: Vec<&str> = names.into_iter().chain(long.iter().map(String::as_str)).collect();
        let ids: Vec<NodeId> =
            names.iter().map(|name| Scope::new(*name).unwrap().id("x/y").unwrap()).collect();
        for (at, (name, id)) in names.iter().zip(&ids).enumerate() {
            let scope = Scope::new(*name).unwrap();
            assert_eq!(Scope::of(id).as_ref(), Some(&scope), "{name:?}");
            assert_eq!(scope.id(id.as_str()).unwrap(), *id, "{name:?}");
            assert!(id.as_str().ends_with("/x/y") && !ids[..at].contains(id), "{name:?}");
            assert!(scope.part().len() > 66 || scope.to_string() == *name || name.len() > 100, "{name:?}");
        }
    }

    #[test]
    fn what_names_no_scope_is_in_none() {
        let longer = format!("@{}/x", "x".repeat(257));
        for text in ["x", "@", "@s", "s/@x", "@%/x", "@%2f/x", "@%25%/x", "@%h/x", "@%h00/x", longer.as_str()]
        {
            let id = NodeId::new(text).unwrap();
            assert_eq!(Scope::of(&id), None, "{text}");
            let inside = Scope::new("s").unwrap().id(text).unwrap();
            assert_eq!(inside.as_str(), format!("@s/{text}"));
        }
        for bad in ["", &"x".repeat(257)] {
            assert!(Scope::new(bad).is_err());
        }
        assert!(Scope::new("s").unwrap().id("").is_err());
        assert!(Scope::new("s").unwrap().id(&"x".repeat(1022)).is_err());
    }
}
