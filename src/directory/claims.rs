//! Taking a node, and what a holder does with its claim.

use std::io::Read;
use std::time::Duration;

use serde_json::{Value, json};

use super::blobs::Form;
use super::receipts::Request;
use super::reserve::Reservation;
use super::{Directory, Lease};
use crate::domain::{
    self, Acquire, Acquired, Answer, Checked, Content, Fingerprint, Mint, Node, Reason, Refusal, Renewal,
    Stale, Standing, Step, Token, WriteId, Written, standing,
};
use crate::error::{Error, Result};
use crate::id::NodeId;
use crate::store::Key;
use crate::time::human;

impl Directory {
    /// Takes the node `id`, making it if there is none, or says at once why not.
    ///
    /// Of all who try at the same moment exactly one gets a [`Lease`].
    pub fn try_acquire(&self, id: &NodeId, request: &Acquire) -> Result<Answer<Lease>> {
        let fingerprint =
            || Fingerprint::of("acquire", Some(&request.owner), id.as_str(), request.arguments());
        let once = self.receipt.as_ref().map(|key| Request::new(key, fingerprint())).transpose()?;
        self.knowing(None).take(id, request, once.as_ref(), None)
    }

    /// Takes the node, only from the write `from` if one is named.
    pub(super) fn take(
        &self,
        id: &NodeId,
        request: &Acquire,
        once: Option<&Request>,
        from: Option<WriteId>,
    ) -> Result<Answer<Lease>> {
        self.admit_lease(request.lease)?;
        let mint = self.mint()?;
        let mut reservation = Reservation::new(&mint.token);
        let answer = self.rounds_as(once, id, |node, facts, write| {
            if from.is_some_and(|from| from != node.write) {
                return Ok(Some(Step::refuse(node, Reason::StaleVersion { seen: node.version })));
            }
            let step = domain::acquire(node, facts, request, &Mint { write, ..mint.clone() });
            self.reserve_first(&mut reservation, node, facts, step)
        });
        // What is left of it is dead, or will be found overdue.
        let _ = self.reserved_in_vain(&reservation, &answer);
        let acquired = match answer? {
            Ok(acquired) => acquired,
            Err(refusal) => return Ok(self.refused_to_the_root(Err(refusal))),
        };
        if acquired.replay {
            return self.replayed(mint.token, acquired).map(Ok);
        }
        // A freeze may have outlasted the lease before it was published.
        if !self.is_held(&acquired.node) {
            if let Some(scope) = self.scope_halt(id)? {
                // Whoever cancelled it may have looked before this node was there. Where that can't be written
                // down, it is so all the same.
                let _ = self.write_down(id);
                return Ok(Err(Refusal::new(&acquired.node, scope.refusal())));
            }
            // Where that fails, the end that the record names lets others take it all the same.
            let over = |_| Refusal::new(&acquired.node, Reason::Stale(Stale::Over));
            return Ok(Err(self.give_back(id, &mint.token).unwrap_or_else(over)));
        }
        Ok(Ok(Lease::new(self.without_receipt(), mint.token, acquired)))
    }

    /// Refuses a lease that nobody could trust for a moment.
    fn admit_lease(&self, lease: Duration) -> Result<()> {
        let skew = self.store.skew();
        if lease > skew || skew.is_zero() {
            return Ok(());
        }
        let [lease, skew] =
            [lease, skew].map(|length| human(i64::try_from(length.as_millis()).unwrap_or(i64::MAX)));
        let message = format!("a lease of {lease} can't be trusted where clocks may be {skew} apart");
        Err(Error::usage(message)
            .hint("take a longer one, or set the clocks better and say so with --max-skew"))
    }

    /// What only the taker will know. With a receipt, the token follows from its key.
    fn mint(&self) -> Result<Mint> {
        let random = self.host.random()?;
        let nonce = self.receipt.as_ref().map(|_| format!("{random:032x}"));
        let token = match (&self.receipt, &nonce) {
            (Some(key), Some(nonce)) => key.token(nonce),
            _ => Token::of(random),
        };
        let write = domain::WriteId::of(0); // each round has its own
        Ok(Mint { token, nonce, write, host: self.host.name(), pid: std::process::id() })
    }

    /// The claim that an earlier call of the same request took, with the token it got; lost, if it is over.
    fn replayed(&self, token: Token, acquired: Acquired) -> Result<Lease> {
        let token = match (&self.receipt, &acquired.nonce) {
            (Some(key), Some(nonce)) => key.token(nonce),
            _ => token,
        };
        let live = self.check(&acquired.node.id, &token)?;
        let lease = Lease::new(self.without_receipt(), token, acquired);
        match live {
            Ok(checked) => lease.renewed(&checked.node),
            Err(refusal) => lease.lose(refusal),
        }
        Ok(lease)
    }

    /// What [`Directory::try_acquire`] would do now. Writes nothing.
    pub fn would_acquire(&self, id: &NodeId, request: &Acquire) -> Result<Answer<Acquired>> {
        let node = self.node(id)?.unwrap_or_else(|| Node::unowned(id.clone()));
        self.would_take(&node, request)
    }

    /// The same of a record that was read before.
    pub fn would_take(&self, node: &Node, request: &Acquire) -> Result<Answer<Acquired>> {
        let mint = self.mint()?;
        let answer = self.with_facts(node, |facts| domain::acquire(node, facts, request, &mint)).answer;
        let Some(claim) = answer.as_ref().ok().and_then(|acquired| acquired.node.claim()) else {
            return Ok(self.refused_to_the_root(answer));
        };
        Ok(match self.would_refuse(&claim.resources, node)? {
            Some(reason) => Err(Refusal::new(node, reason)),
            None => answer,
        })
    }

    /// Is `token` the live holder's? For hooks and scripts, just before a side effect. Writes nothing.
    pub fn check(&self, id: &NodeId, token: &Token) -> Result<Answer<Checked>> {
        self.update(id, |node, facts, _| domain::check(node, facts, token))
    }

    /// Lets the lease end later: its length from now on.
    pub fn renew(&self, id: &NodeId, token: &Token, renewal: &Renewal) -> Result<Answer<Written>> {
        renewal.progress.as_ref().map_or(Ok(()), domain::admit)?;
        renewal.lease.map_or(Ok(()), |lease| self.admit_lease(lease))?;
        let answer = self.update_once(
            id,
            "renew",
            None,
            || {
                json!([
                    token.hash().hex(),
                    renewal.lease.map(|lease| lease.as_millis() as u64),
                    renewal.progress
                ])
            },
            |node, facts, write| domain::renew(node, facts, token, renewal, write),
        )?;
        match answer {
            // Over before anybody could be told, unless another call with this token has renewed since.
            Ok(renewed) if !renewed.replay && !self.is_held(&renewed.node) => {
                let over = Refusal::new(&renewed.node, Reason::Stale(Stale::Over));
                Ok(self.check(id, token)?.map(|_| renewed).map_err(|lost| match lost.reason {
                    Reason::Stale(Stale::CalledOff(_)) => lost,
                    _ => over,
                }))
            }
            answer => Ok(answer),
        }
    }

    /// Gives the node back, and the attempt with it: ready for anybody, or blocked for a reason.
    pub fn release(&self, id: &NodeId, token: &Token, block: Option<&str>) -> Result<Answer<Written>> {
        self.update_once(
            id,
            "release",
            None,
            || json!([token.hash().hex(), block]),
            |node, facts, write| domain::release(node, facts, token, block, write),
        )
    }

    /// Ends the node as done and records its one result. The same again is answered as a replay; with another
    /// result it is refused.
    pub fn complete(&self, id: &NodeId, token: &Token, result: &Value) -> Result<Answer<Written>> {
        let content = self.content(id, result, || self.result_part(id, token))?;
        self.complete_with(id, token, content)
    }

    /// The same with the JSON that `from` gives, up to [`Blob::MAX_BYTES`](domain::Blob::MAX_BYTES), of which no more than a piece is held at a
    /// time. What has more than [`Blob::MIN_BYTES`](domain::Blob::MIN_BYTES) is kept as it is and compared byte for byte.
    ///
    /// # Errors
    ///
    /// [`Usage`](crate::Code::Usage) if it is larger, is no JSON, or can't be read to its end; then nothing was changed.
    pub fn complete_from(&self, id: &NodeId, token: &Token, from: &mut dyn Read) -> Result<Answer<Written>> {
        let content = self.content_from(id, from, Form::Json, || self.result_part(id, token))?;
        self.complete_with(id, token, content)
    }

    /// The same with a program's output: JSON if it is JSON, else text, which must be UTF-8.
    pub fn complete_from_output(
        &self,
        id: &NodeId,
        token: &Token,
        from: &mut dyn Read,
    ) -> Result<Answer<Written>> {
        let content = self.content_from(id, from, Form::Any, || self.result_part(id, token))?;
        self.complete_with(id, token, content)
    }

    fn complete_with(&self, id: &NodeId, token: &Token, result: Answer<Content>) -> Result<Answer<Written>> {
        let result = &match result {
            Ok(result) => result,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let operation = match result {
            Content::Value(_) => "complete",
            Content::Blob(_) => "complete with a blob",
        };
        let answer = self.rounds_once(
            id,
            operation,
            None,
            || json!([token.hash().hex(), result.argument()]),
            |node, facts, write| self.naming(result, domain::complete(node, facts, token, result, write)),
        );
        let answer = self.unless_named(result, answer, |written| &written.node)?;
        if matches!(answer, Ok(Written { replay: true, .. })) {
            #[cfg(feature = "testing")]
            if crate::testing::fault("a replay not confirmed") {
                return Ok(answer);
            }
            self.store.confirm(&Key::Node(id.clone()))?;
        }
        Ok(answer)
    }

    fn is_held(&self, node: &Node) -> bool {
        #[cfg(feature = "testing")]
        if crate::testing::fault("published after its end, answered as won") {
            return true;
        }
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
