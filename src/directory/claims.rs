//! Taking a node, and what a holder does with its claim.

use serde_json::Value;

use super::{Directory, Lease};
use crate::domain::{
    self, Acquire, Acquired, Answer, Checked, Completed, Mint, Node, Reason, Refusal, Released, Renewal,
    Renewed, Stale, Standing, Step, Token, standing,
};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::Key;

impl Directory {
    /// Takes the node `id`, making it if there is none, or says at once why not.
    ///
    /// Of all who try at the same moment exactly one gets a [`Lease`].
    pub fn try_acquire(&self, id: &NodeId, request: &Acquire) -> Result<Answer<Lease>> {
        let token = Token::of(self.host.random()?);
        let (host, pid) = (self.host.name(), std::process::id());
        let answer = self.update(id, |node, facts, write| {
            let mint = Mint { token: token.clone(), write, host: host.clone(), pid };
            domain::acquire(node, facts, request, &mint)
        })?;
        let acquired = match answer {
            Ok(acquired) => acquired,
            Err(refusal) => return Ok(Err(refusal)),
        };
        // A freeze may have outlasted the lease before it was published.
        if !self.is_held(&acquired.node) {
            return self.give_back(id, &token).map(Err);
        }
        Ok(Ok(Lease::new(self.clone(), token, acquired)))
    }

    /// What [`Directory::try_acquire`] would do now. Writes nothing.
    pub fn would_acquire(&self, id: &NodeId, request: &Acquire) -> Result<Answer<Acquired>> {
        let node = self.node(id)?.unwrap_or_else(|| Node::unowned(id.clone()));
        let mint = Mint {
            token: Token::of(self.host.random()?),
            write: domain::WriteId::of(self.host.random()?),
            host: self.host.name(),
            pid: std::process::id(),
        };
        Ok(self.with_facts(&node, |facts| domain::acquire(&node, facts, request, &mint)).answer)
    }

    /// Is `token` the live holder's? For hooks and scripts, just before a side effect. Writes nothing.
    pub fn check(&self, id: &NodeId, token: &Token) -> Result<Answer<Checked>> {
        let node = self.node(id)?.unwrap_or_else(|| Node::unowned(id.clone()));
        Ok(self.with_facts(&node, |facts| domain::check(&node, facts, token)).answer)
    }

    /// Lets the lease end later: its length from now on.
    pub fn renew(&self, id: &NodeId, token: &Token, renewal: &Renewal) -> Result<Answer<Renewed>> {
        renewal.progress.as_ref().map_or(Ok(()), domain::admit)?;
        let answer =
            self.update(id, |node, facts, write| domain::renew(node, facts, token, renewal, write))?;
        Ok(answer.and_then(|renewed| {
            if self.is_held(&renewed.node) {
                Ok(renewed)
            } else {
                Err(Refusal::new(&renewed.node, Reason::Stale(Stale::Over)))
            }
        }))
    }

    /// Gives the node back, and the attempt with it: ready for anybody, or blocked for a reason.
    pub fn release(&self, id: &NodeId, token: &Token, block: Option<&str>) -> Result<Answer<Released>> {
        self.update(id, |node, facts, write| domain::release(node, facts, token, block, write))
    }

    /// Ends the node as done and records its one result. The same again is answered as a replay; with another
    /// result it is refused.
    pub fn complete(&self, id: &NodeId, token: &Token, result: &Value) -> Result<Answer<Completed>> {
        domain::admit(result)?;
        let answer =
            self.update(id, |node, facts, write| domain::complete(node, facts, token, result, write))?;
        if matches!(answer, Ok(Completed { replay: true, .. })) {
            self.store.confirm(&Key::Node(id.clone()))?;
        }
        Ok(answer)
    }

    fn is_held(&self, node: &Node) -> bool {
        self.with_facts(node, |facts| matches!(standing(node, facts), Standing::Held { .. }))
    }

    /// Gives back a claim that was over before anybody could be told of it.
    fn give_back(&self, id: &NodeId, token: &Token) -> Result<Refusal> {
        let answer: Answer<Refusal> = self.update(id, |node, _, write| {
            let refusal = Refusal::new(node, Reason::Stale(Stale::TooLate));
            Step { write: domain::given_back(node, token, write), answer: Ok(refusal) }
        })?;
        Ok(answer.unwrap_or_else(|refusal| refusal))
    }
}
