//! Tasks that something is in the way of: they stand aside, under what it is, and are passed by together.

use super::run::Turn;
use super::walk::Walk;
use crate::domain::hint;
use crate::domain::{Node, Reason, Refusal, Standing, WriteId};
use crate::error::Result;
use crate::store::Key;

impl Walk<'_> {
    /// Was it found before that `obstacle` still is one?
    pub(super) fn is_known_closed(&self, obstacle: Option<&str>) -> bool {
        obstacle.is_some_and(|obstacle| self.closed.contains(obstacle))
    }

    /// Is that which the tasks in `folder` stand under still in their way? It is if it is in the first one's.
    pub(super) fn is_closed(&mut self, folder: &str, obstacle: &str) -> Result<bool> {
        if self.is_known_closed(Some(obstacle)) {
            return Ok(true);
        }
        let first = self.list(folder, None, 1)?;
        let mark = first.first().and_then(|key| hint::mark_of(key.name()));
        let Some(Ok(Some(node))) = mark.map(|mark| self.directory.node(&mark.id)) else { return Ok(false) };
        let Some(reason) = self.in_its_way(&node)? else { return Ok(false) };
        if hint::obstacle(&reason).as_deref() != Some(obstacle) {
            return Ok(false);
        }
        self.closed.insert(obstacle.to_owned());
        if self.directory.standing(&node, |now| matches!(now, Standing::Free)) {
            self.refused(Refusal::new(&node, reason));
        }
        Ok(true)
    }

    /// Why `node` is refused for what it needs itself, whatever this request asks for beside that.
    fn in_its_way(&self, node: &Node) -> Result<Option<Reason>> {
        match &node.task {
            Some(task) => self.directory.would_refuse(&task.resources, node),
            None => Ok(None),
        }
    }

    /// Takes a task that was refused out of the way of the others.
    pub(super) fn park(&mut self, turn: &Turn) -> Result<()> {
        let Ok(Some(node)) = self.directory.node(&turn.mark.id) else { return Ok(()) };
        let (Some(task), Some(reason)) = (&node.task, self.in_its_way(&node)?) else { return Ok(()) };
        let Some(obstacle) = hint::obstacle(&reason) else { return Ok(()) };
        if turn.obstacle.as_ref() == Some(&obstacle) {
            self.closed.insert(obstacle);
            return Ok(());
        }
        let random = WriteId::of(self.directory.host.random()?).half();
        let name = hint::parked(task, &turn.mark, &obstacle, turn.place.0, random);
        self.directory.store.hint(&Key::internal(name)?)?;
        self.directory.drop_hint(&turn.name);
        Ok(())
    }
}
