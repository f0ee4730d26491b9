//! `doctor`: what is wrong with the directory, and what of that can be mended without losing a fact.
//!
//! Others work meanwhile. So what a write under way looks like, too, is a *suspect*: it is looked at once more at the
//! end, and a record decides, read after what it decides on. What is lost is seen between two reads of one write of its
//! record. Each step of mending is one swap, or takes away a name that no record comes to name again; so any number
//! may mend at once, and be stopped anywhere.
//!
//! | what | is wrong if | is mended by |
//! |---|---|---|
//! | record | it can't be read | nobody: it was all there is |
//! | hint | its record names it, and it is not there | being put again |
//! | | its record has come to its version and does not need it | being removed |
//! | | it is ahead of its record: of a writer that died | a swap that changes nothing, then as before |
//! | registration | a task waits for another and has none | being put again |
//! | | what it waits for is done | telling the task |
//! | roster | its entry is of a claim that is gone or never came | one swap of the roster |
//! | | a claim has no entry | one swap, while the node holds the claim |
//! | | it can't be read, or is not there and a claim has some of it | nobody: slots, and claims that are only announced, stand nowhere else |
//! | two claims | both are live and have paths that clash | nobody: whose work can wait is not known here |
//! | quota, scope, queue | it can't be read | nobody, as above |
//! | receipt | it is pending, and its record has the answer | being settled, as the next writer would |
//! | mailbox | its head is gone, or far behind | a swap of the head |
//! | | messages stand below its floor | their removal |
//! | | messages are missing, a cursor is beyond the last | nobody: numbers must not be used again |
//! | blob | no record names it, nor can | its removal |
//! | intent | its writer has died | its removal |
//!
//! A claim that is over is nothing to mend.

mod claims;
mod hints;
mod records;
mod registrations;
mod rosters;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::Directory;
use crate::domain::{Node, TokenHash, WriteId};
use crate::error::{Code, Error, Result};
use crate::id::NodeId;
use crate::store::{Finding, Gravity, Key};

/// How long a writer that was met on its way has to come to its end before what it does is reported.
const MOMENT: Duration = Duration::from_millis(250);

/// What [`Directory::doctor`] or [`Directory::repair`] found.
#[derive(Debug)]
pub struct Checkup {
    /// How many records were read.
    pub records: usize,
    /// Does every task that can come up have what leads workers to it?
    pub hints_whole: bool,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// What may be wrong, or be a write under way.
pub(super) enum Suspect {
    /// A hint that should not be there.
    Hint(String),
    /// One that is ahead of its record, which was at this write.
    Ahead(String, WriteId),
    /// A task that is met, and some have not been told.
    Untold(NodeId),
    /// The node of a write whose receipt is not settled.
    Receipt(NodeId),
    /// The cursor of such a write.
    Cursor(Key),
    /// A blob that no record names.
    Blob(Key),
}

/// One examination.
pub(super) struct Visit<'a> {
    pub(super) directory: &'a Directory,
    pub(super) repairs: bool,
    findings: Vec<Finding>,
    suspects: Vec<Suspect>,
    /// Has everything been hinted since this boot? Else the next who finds nothing to take does that.
    hinted: bool,
    hints_whole: bool,
    /// How many tasks there are.
    tasks: usize,
    /// Tasks whose hint is not where their records name it: another may lead to them.
    unled: HashMap<NodeId, WriteId>,
    /// Whose claims have entries, as far as rosters were read.
    entries: HashMap<Key, HashSet<TokenHash>>,
    live: claims::Live,
}

impl Directory {
    /// Checks every record, and all that lies beside them. Writes nothing.
    pub fn doctor(&self) -> Result<Checkup> {
        Visit::new(self, false)?.examine()
    }

    /// The same, and mends what can be mended without losing a fact. Owns nothing; may run while others work, as often
    /// as anybody likes, and may be stopped at any point.
    pub fn repair(&self) -> Result<Checkup> {
        let checkup = Visit::new(self, true)?.examine();
        self.tidy();
        checkup
    }
}

impl<'a> Visit<'a> {
    fn new(directory: &'a Directory, repairs: bool) -> Result<Visit<'a>> {
        Ok(Visit {
            directory,
            repairs,
            findings: Vec::new(),
            suspects: Vec::new(),
            hinted: directory.is_hinted()?,
            hints_whole: true,
            tasks: 0,
            unled: HashMap::new(),
            entries: HashMap::new(),
            live: claims::Live::default(),
        })
    }

    fn examine(mut self) -> Result<Checkup> {
        let store = &self.directory.store;
        if self.repairs {
            self.findings.extend(store.clean()?);
        }
        self.findings.extend(store.inspect()?);
        let records = self.records()?;
        self.go_on("due", Visit::hints);
        self.go_on("dependents", Visit::registrations);
        self.go_on("receipts", Visit::receipts);
        self.go_on("rosters", Visit::rosters);
        self.go_on("rosters", Visit::claims);
        self.go_on("mail", Visit::mail);
        self.go_on("blobs", Visit::left_over_blobs);
        self.findings.extend(self.directory.examine_journal());
        self.look_again();
        if self.repairs && self.hints_whole && !self.hinted && self.tasks > 0 {
            self.directory.say_hinted()?;
        }
        Ok(Checkup { records, hints_whole: self.hints_whole, findings: self.findings })
    }

    /// One part after the other: what can't be listed is a finding.
    fn go_on(&mut self, folder: &str, part: impl FnOnce(&mut Self) -> Result<()>) {
        if let Err(error) = part(self) {
            let place = Key::internal(folder).map(|key| self.place(&key)).unwrap_or_default();
            self.unreadable(place, &error);
        }
    }

    /// What was suspected and is still so when every writer that was met has had a moment.
    fn look_again(&mut self) {
        let suspects = std::mem::take(&mut self.suspects);
        if !suspects.is_empty() {
            self.directory.host.pause(MOMENT);
        }
        for suspect in suspects {
            match suspect {
                Suspect::Hint(name) => self.hint_again(&name, None),
                Suspect::Ahead(name, write) => self.hint_again(&name, Some(write)),
                Suspect::Untold(id) => self.untold_again(&id),
                Suspect::Receipt(id) => self.receipt_again(&id),
                Suspect::Cursor(key) => self.cursor_again(&key),
                Suspect::Blob(key) => self.blob_again(&key),
            }
        }
    }

    pub(super) fn suspect(&mut self, suspect: Suspect) {
        self.suspects.push(suspect);
    }

    /// Something to mend by hand, or not at all.
    pub(super) fn report(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// What can't be read, in the words of its error.
    pub(super) fn unreadable(&mut self, place: String, error: &Error) {
        let next = match error.code() {
            Code::FormatTooNew => "it was left as it is; use a newer claim",
            _ => "it was left as it is; look at it, and put a whole copy there or move it elsewhere yourself",
        };
        self.report(Finding::new(Gravity::Fault, place, error.to_string(), next));
    }

    /// Something that `mend` mends, who answers `false` if it is not so any more. Is it mended, or not so?
    pub(super) fn mend(
        &mut self,
        finding: Finding,
        mend: impl FnOnce(&'a Directory) -> Result<bool>,
    ) -> bool {
        if !self.repairs {
            self.report(finding);
            return false;
        }
        match mend(self.directory) {
            Ok(false) => true,
            Ok(true) => {
                self.report(Finding { mended: true, ..finding });
                true
            }
            Err(error) => {
                self.report(Finding { next: format!("it could not be mended: {error}"), ..finding });
                false
            }
        }
    }

    pub(super) fn place(&self, key: &Key) -> String {
        self.directory.store.place(Some(key))
    }

    /// Is the record of `node` still the one that was read?
    fn is_still(&self, node: &Node) -> Result<bool> {
        self.directory.is_at(&node.id, node.write)
    }
}

impl Directory {
    /// Is the node at this write?
    fn is_at(&self, id: &NodeId, write: WriteId) -> Result<bool> {
        Ok(self.node(id)?.is_some_and(|now| now.write == write))
    }
}
