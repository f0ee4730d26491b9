//! Tasks that come up by time, or since their workers' processes are gone.

use std::sync::atomic::Ordering;

use super::GLANCE;
use super::run::{Run, Turn};
use super::walk::Walk;
use crate::domain::hint;
use crate::domain::{Standing, standing};
use crate::error::Result;

/// The short folder of what ends with a process.
pub(super) const BOUND: &str = "bound";

impl Walk<'_> {
    /// Can anything in this list of timed hints be due? Told by the names of its folders, and not by those of the hints:
    /// of many that are held for an hour each there are some hundred in the first folder.
    pub(super) fn may_be_due(&self, folder: &str, until: i64) -> Result<bool> {
        if self.glimpse.is_some() {
            return Ok(true); // the first ones are known already
        }
        let mut folder = folder.to_owned();
        for bound in hint::timed_folders(until) {
            match self.parts(&folder)?.first() {
                Some(first) if *first == bound => folder = format!("{folder}/{bound}"),
                first => return Ok(first.is_some_and(|first| *first < bound)),
            }
        }
        Ok(true)
    }

    /// Nothing was taken: when will the first of those come up that are not due?
    pub(super) fn look_forward(&mut self) -> Result<()> {
        for (folder, until) in std::mem::take(&mut self.not_due) {
            if Run::listed(folder, Some(until)).peek(self)?.is_some() {
                self.lost = true; // put since
            }
        }
        Ok(())
    }

    /// Those are looked for from time to time only: their leases' ends tell it too.
    pub(super) fn is_time_for_orphans(&self) -> bool {
        let now = self.directory.host.mono_ns();
        let glanced = &self.directory.queues.glanced_ns;
        let last = glanced.load(Ordering::Relaxed);
        if last != 0 && now.saturating_sub(last) < u64::try_from(GLANCE.as_nanos()).unwrap_or(u64::MAX) / 2 {
            return false;
        }
        glanced.store(now.max(1), Ordering::Relaxed);
        true
    }

    /// Tasks whose workers' processes are gone, each under its priority.
    pub(super) fn orphans(&mut self, lane: &str) -> Result<Vec<(String, Turn)>> {
        let folder = format!("{lane}/{BOUND}");
        let keys = self.list(&folder, None, usize::MAX)?;
        let mut orphans = Vec::new();
        for key in keys {
            let Some(mark) = hint::mark_of(key.name()) else { continue };
            let Ok(Some((node, _))) = self.read(&mark.id) else { continue };
            let Some(task) = &node.task else { continue };
            let over = self.directory.with_facts(&node, |facts| {
                matches!(
                    standing(&node, facts),
                    Standing::Lapsed { .. } | Standing::Spent { .. } | Standing::Overdue { .. }
                )
            });
            if over && hint::is_named(&node, &mark) {
                let asked = &self.request.projects;
                if asked.is_empty() || task.project.as_ref().is_some_and(|project| asked.contains(project)) {
                    let turn = Turn::new(key.name(), mark, task.submitted_ms);
                    orphans.push((task.priority.to_string(), turn));
                }
            } else if !self.looks && node.version >= mark.version && !hint::is_named(&node, &mark) {
                self.directory.drop_hint(key.name());
            }
        }
        Ok(orphans)
    }
}
