//! What a task waits for in the end: a task may wait for one that will never be done without somebody's act, since
//! that waits for one that has failed. Told by reading along, and never written down: a requeue changes it for all.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Directory;
use crate::domain::{Answer, Lack, Need, Reason};
use crate::id::NodeId;

/// How far is read along. What lies further away is not told.
const FURTHEST: usize = 64;

/// What was found of tasks that are waited for, so that one look at many nodes reads each of them once.
#[derive(Debug, Default)]
pub struct Roots(Mutex<BTreeMap<NodeId, Option<Need>>>);

impl Roots {
    fn known(&self, id: &NodeId) -> Option<Option<Need>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    fn keep(&self, id: &NodeId, root: Option<&Need>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), root.cloned());
    }
}

impl Directory {
    /// `need` itself, or as [`Lack::Stuck`] if what it is about waits for something that can't come without somebody's
    /// act. Writes nothing.
    pub fn to_the_root(&self, need: &Need, roots: &Roots) -> Need {
        match self.root(need, roots, FURTHEST) {
            Ok(Some(root)) => Need { on: need.on.clone(), lacks: Lack::Stuck(Box::new(root)) },
            Ok(None) | Err(TooFar) => need.clone(),
        }
    }

    /// The same of a refusal for want of a dependency.
    pub(super) fn refused_to_the_root<T>(&self, answer: Answer<T>) -> Answer<T> {
        answer.map_err(|refusal| match &refusal.reason {
            Reason::Waits(need) => {
                let need = self.to_the_root(need, &Roots::default());
                refusal.because(Reason::Waits(need))
            }
            _ => refusal,
        })
    }

    /// What `need.on` waits for in vain in the end.
    fn root(&self, need: &Need, roots: &Roots, further: usize) -> Result<Option<Need>, TooFar> {
        if !matches!(need.lacks, Lack::Unfinished(_)) {
            return Ok(None);
        }
        if let Some(known) = roots.known(&need.on) {
            return Ok(known);
        }
        let further = further.checked_sub(1).ok_or(TooFar)?;
        let Ok(Some(node)) = self.node(&need.on) else { return Ok(None) };
        let mut found = Ok(None);
        for own in self.needs(&node) {
            match own.lacks {
                Lack::Ended(_) | Lack::Gone => found = Ok(Some(own)),
                _ => match self.root(&own, roots, further) {
                    Ok(None) => continue,
                    Ok(root) => found = Ok(root),
                    Err(TooFar) => {
                        found = Err(TooFar); // another may tell
                        continue;
                    }
                },
            }
            break;
        }
        if let Ok(root) = &found {
            roots.keep(&need.on, root.as_ref());
        }
        found
    }
}

/// More is waited for than is read.
struct TooFar;
