//! Why a request to a mailbox was refused.

use super::MailName;
use crate::domain::record::Fingerprint;
use crate::domain::refusal::Refusal;
use crate::error::Code;

/// A request to a mailbox that was answered with no. A value, not an error.
#[derive(Clone, Debug, PartialEq)]
pub struct MailRefusal {
    /// The box.
    pub on: MailName,
    /// Why.
    pub reason: MailReason,
}

/// Why a request to a mailbox was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum MailReason {
    /// The claim under which a message was to be sent is not the live one.
    Claim(Box<Refusal>),
    /// The work key stands for a message with another payload.
    OtherPayload {
        /// The fingerprint of the message that was sent with this key.
        recorded: Fingerprint,
        /// The fingerprint of the one that was refused.
        shown: Fingerprint,
    },
    /// The receipt's key was used for another request.
    OtherRequest {
        /// The fingerprint of the request that was made with this key.
        recorded: Fingerprint,
        /// The fingerprint of the one that was refused.
        shown: Fingerprint,
    },
    /// There is no message after what the reader has acknowledged.
    Nothing {
        /// The number that the next message will have.
        next: u64,
        /// The highest number that the reader was handed.
        handed_out: u64,
        /// Up to where it has dealt with them.
        acknowledged: u64,
    },
    /// Acknowledging would go backwards.
    Backwards {
        /// The number given.
        number: u64,
        /// The highest number that the reader was handed.
        handed_out: u64,
        /// Up to where it has dealt with them.
        acknowledged: u64,
    },
    /// Acknowledging would go past what was handed out.
    NotHandedOut {
        /// The number given.
        number: u64,
        /// The highest number that the reader was handed.
        handed_out: u64,
        /// Up to where it has dealt with them.
        acknowledged: u64,
    },
    /// There is no such box.
    NotFound,
    /// The wait ended first; what it waited for.
    TimedOut(Box<MailRefusal>),
}

/// Which of its two keys a message was refused by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    WorkKey,
    Receipt,
}

impl KeyKind {
    /// This key stands for something else.
    pub(crate) fn conflict(self, recorded: Fingerprint, shown: Fingerprint) -> MailReason {
        match self {
            KeyKind::WorkKey => MailReason::OtherPayload { recorded, shown },
            KeyKind::Receipt => MailReason::OtherRequest { recorded, shown },
        }
    }
}

impl MailRefusal {
    /// The code that decides the exit code.
    pub fn code(&self) -> Code {
        match &self.reason {
            MailReason::Claim(refusal) => refusal.code(),
            MailReason::OtherPayload { .. }
            | MailReason::Backwards { .. }
            | MailReason::NotHandedOut { .. } => Code::IdempotencyConflict,
            MailReason::OtherRequest { .. } => Code::ReceiptConflict,
            MailReason::Nothing { .. } => Code::NothingEligible,
            MailReason::NotFound => Code::NotFound,
            MailReason::TimedOut(_) => Code::WaitTimeout,
        }
    }

    /// A reader's two positions, handed out and acknowledged, where the refusal is about them.
    pub fn positions(&self) -> Option<(u64, u64)> {
        match &self.reason {
            MailReason::Nothing { handed_out, acknowledged, .. }
            | MailReason::Backwards { handed_out, acknowledged, .. }
            | MailReason::NotHandedOut { handed_out, acknowledged, .. } => Some((*handed_out, *acknowledged)),
            MailReason::TimedOut(inner) => inner.positions(),
            _ => None,
        }
    }

    /// What was read, in one clause.
    pub fn message(&self) -> String {
        match &self.reason {
            MailReason::Claim(refusal) => format!("not sent: {}", refusal.message()),
            MailReason::OtherPayload { recorded, shown } => format!(
                "the work key stands for a message with another payload (fingerprint {}, and this one is {})",
                recorded.hex(),
                shown.hex()
            ),
            MailReason::OtherRequest { recorded, shown } => format!(
                "the receipt's key stands for another request (fingerprint {}, and this one is {})",
                recorded.hex(),
                shown.hex()
            ),
            MailReason::Nothing { next, handed_out, acknowledged } => format!(
                "message {next} is not there yet (handed out {handed_out}, acknowledged \
                 {acknowledged})"
            ),
            MailReason::Backwards { number, handed_out, acknowledged } => format!(
                "{number} would go backwards: {acknowledged} is acknowledged already (handed out {handed_out})"
            ),
            MailReason::NotHandedOut { number, handed_out, acknowledged } => {
                format!("{number} was not handed out: only {handed_out} was (acknowledged {acknowledged})")
            }
            MailReason::NotFound => "there is no such box".to_owned(),
            MailReason::TimedOut(inner) => format!("waited in vain: {}", inner.message()),
        }
    }

    /// The legal next step.
    pub fn next_step(&self) -> String {
        match &self.reason {
            MailReason::Claim(refusal) => refusal.next_step(),
            MailReason::OtherPayload { .. } => {
                "the first message stands; use a new work key for a new message".to_owned()
            }
            MailReason::OtherRequest { .. } => {
                "retry with what was asked for the first time, or use a new key for a new request".to_owned()
            }
            MailReason::Nothing { .. } | MailReason::TimedOut(_) => {
                "come back later, or wait with --wait".to_owned()
            }
            MailReason::Backwards { .. } => "nothing is left to say about that message".to_owned(),
            MailReason::NotHandedOut { .. } => {
                "read first, and acknowledge what you have dealt with".to_owned()
            }
            MailReason::NotFound => {
                "`claim mail list` shows the boxes; the first message makes one".to_owned()
            }
        }
    }
}
