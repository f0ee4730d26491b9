//! Pure decisions on records: no files, no clock, no randomness.
//!
//! A decision gets the record that was read, what the host tells ([`Facts`]) and the request, and says what to
//! write and what to answer. It is taken anew each time a swap is lost.

mod claim;
mod codec;
mod control;
mod event;
mod fate;
mod halt;
pub(crate) mod hint;
mod mail;
mod message;
mod natural;
mod over;
mod quota;
mod receipt;
mod record;
mod refusal;
mod remark;
mod roster;
mod scope;
mod settle;
mod shared;
mod standing;
mod task;
mod text;
mod tombstone;

pub use claim::{Acquire, Acquired, Force};
pub(crate) use claim::{Mint, acquire};
pub use codec::{FORMAT, Malformed, attempt_json, for_show};
pub(crate) use codec::{
    MAX_DEPTH, MAX_RECORD_BYTES, admit, decode, decode_brief, decode_gate, decode_quota, decode_roster,
    encode_gate, encode_quota, encode_roster, encode_within_limit,
};
pub use control::{Blocking, Cancel};
pub(crate) use control::{block, cancel, requeue, unblock};
pub(crate) use event::told;
pub use event::{Event, What};
pub(crate) use fate::became;
pub use fate::{Became, Fate, fate};
pub use halt::Halt;
pub(crate) use halt::{Gate, Gated};
pub use mail::{ByClaim, Cursor, Letter, MailName, MailReason, MailRefusal, Mailbox, Message, Page, Sent};
pub(crate) use mail::{Head, KeyKind, Sending, SendingState, acknowledge, decode_sending};
pub use message::WorkKey;
pub(crate) use message::message_id;
pub use natural::natural;
pub(crate) use natural::of_natural;
pub(crate) use over::{ended_by_time, over};
pub(crate) use quota::Quota;
pub use quota::Rate;
pub use receipt::ReceiptKey;
pub(crate) use receipt::{
    Carrier, Found, Receipt, Recorded, Target, decode as decode_receipt, encode as encode_receipt, find,
};
pub use record::{
    Attempt, AttemptEnd, Blob, Block, Bound, Claim, Delay, Ending, Fingerprint, Forced, Lack, LastWrite,
    Moment, Name, Need, Node, Note, Outcome, RepoPath, Resources, Review, State, Task, Token, TokenHash,
    WriteId,
};
pub(crate) use record::{Content, Part, invalid_path, outside, refuse_pattern, without_stars};
pub use refusal::{Holder, Reason, Refusal, Stale};
pub(crate) use remark::{detach, join, note};
pub(crate) use roster::{Entry, EntryState, Pool, Roster, write_of};
pub use scope::Scope;
pub use settle::{Checked, Renewal, Retry, Written};
pub(crate) use settle::{check, complete, given_back, may_complete, reject, release, renew, retry};
pub use shared::{PathClash, PoolFull, QuotaUsed};
pub use standing::{Facts, Lapse, Standing, standing};
pub(crate) use standing::{idle_ms, next_end_ms};
pub use task::{Submission, Submitted, Verdict};
pub(crate) use task::{review, submit};
pub use text::Text;
pub(crate) use tombstone::entomb;

/// What a request gets: the thing it asked for, or why not. Losing is a value.
pub type Answer<T> = std::result::Result<T, Refusal>;

/// The same of a mailbox.
pub type MailAnswer<T> = std::result::Result<T, MailRefusal>;

/// A decision: what to write first, if anything, and what to answer once it stands.
#[derive(Debug)]
pub(crate) struct Step<T> {
    /// The record's successor. `None`: the answer needs no write.
    pub(crate) write: Option<Node>,
    /// What to say once the write, if any, stands.
    pub(crate) answer: Answer<T>,
}

impl<T> Step<T> {
    fn write(next: Node, answer: T) -> Step<T> {
        Step { write: Some(next), answer: Ok(answer) }
    }

    pub(crate) fn answer(answer: T) -> Step<T> {
        Step { write: None, answer: Ok(answer) }
    }

    pub(crate) fn refuse(node: &Node, reason: Reason) -> Step<T> {
        Step { write: None, answer: Err(Refusal::new(node, reason)) }
    }
}
