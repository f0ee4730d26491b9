//! Codes, exit codes and the one error type.
//!
//! Losing is not an error: a claim that somebody else holds is a [`Refusal`](crate::Refusal), a value. An
//! [`Error`] means that the question could not be asked or answered.

use std::io;
use std::path::Path;

/// Why a command did not say yes, as printed in the `code` field of a JSON answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// Another claim on the node is live.
    ClaimHeld,
    /// The node has ended as done.
    AlreadyDone,
    /// An earlier call of the same request has taken the node to do the same work.
    AlreadyRun,
    /// There is nothing to take or to read.
    NothingEligible,
    /// There is no such node.
    NotFound,
    /// The command line or an argument is wrong.
    Usage,
    /// The text can't be an id.
    InvalidId,
    /// The text can't be a path to reserve.
    InvalidPath,
    /// The token shown is not the live holder's.
    StaleClaim,
    /// The version shown is not the current one.
    StaleVersion,
    /// The node has ended already, with another result.
    IdempotencyConflict,
    /// It is not time for that yet.
    NotReady,
    /// A task that this one waits for is not done and accepted.
    DependencyNotAccepted,
    /// No attempts are left.
    AttemptsExhausted,
    /// Who did the work can't review it.
    SelfReview,
    /// Another claim has a path that clashes with one asked for.
    PathClash,
    /// A pool asked for has no free slot.
    PoolFull,
    /// Not enough is left of a quota asked for.
    QuotaUsed,
    /// The receipt's key was used for another request.
    ReceiptConflict,
    /// The node has ended as failed.
    Failed,
    /// The node was cancelled.
    Cancelled,
    /// The node's deadline has passed.
    Expired,
    /// The node is blocked.
    Blocked,
    /// A wait ended before its condition came true.
    WaitTimeout,
    /// A record can't be read as one.
    RecordUnreadable,
    /// A record or a directory is of a newer format.
    FormatTooNew,
    /// The file system failed.
    StoreUnavailable,
    /// The claim directory lies on a file system that several machines can write.
    SharedFileSystem,
    /// No space is left.
    NoSpace,
    /// The file system denied access.
    PermissionDenied,
    /// Too many writers at once; nothing was changed.
    Contended,
    /// There is no claim directory here.
    NoStore,
    /// There is more than one claim directory here.
    AmbiguousStore,
}

impl Code {
    /// Is it an error that trying again can't cure?
    pub fn is_hopeless(self) -> bool {
        matches!(
            self,
            Code::Usage
                | Code::InvalidId
                | Code::InvalidPath
                | Code::NotFound
                | Code::NoStore
                | Code::AmbiguousStore
                | Code::SharedFileSystem
                | Code::PermissionDenied
                | Code::FormatTooNew
        )
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Code::ClaimHeld => "CLAIM_HELD",
            Code::AlreadyDone => "ALREADY_DONE",
            Code::AlreadyRun => "ALREADY_RUN",
            Code::NothingEligible => "NOTHING_ELIGIBLE",
            Code::NotFound => "NOT_FOUND",
            Code::Usage => "USAGE",
            Code::InvalidId => "INVALID_ID",
            Code::InvalidPath => "INVALID_PATH",
            Code::StaleClaim => "STALE_CLAIM",
            Code::StaleVersion => "STALE_VERSION",
            Code::IdempotencyConflict => "IDEMPOTENCY_CONFLICT",
            Code::NotReady => "NOT_READY",
            Code::DependencyNotAccepted => "DEPENDENCY_NOT_ACCEPTED",
            Code::AttemptsExhausted => "ATTEMPTS_EXHAUSTED",
            Code::SelfReview => "SELF_REVIEW",
            Code::PathClash => "PATH_CLASH",
            Code::PoolFull => "POOL_FULL",
            Code::QuotaUsed => "QUOTA_USED",
            Code::ReceiptConflict => "RECEIPT_CONFLICT",
            Code::Failed => "FAILED",
            Code::Cancelled => "CANCELLED",
            Code::Expired => "EXPIRED",
            Code::Blocked => "BLOCKED",
            Code::WaitTimeout => "WAIT_TIMEOUT",
            Code::RecordUnreadable => "RECORD_UNREADABLE",
            Code::FormatTooNew => "FORMAT_TOO_NEW",
            Code::StoreUnavailable => "STORE_UNAVAILABLE",
            Code::SharedFileSystem => "SHARED_FILE_SYSTEM",
            Code::NoSpace => "NO_SPACE",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::Contended => "CONTENDED",
            Code::NoStore => "NO_STORE",
            Code::AmbiguousStore => "AMBIGUOUS_STORE",
        }
    }

    /// The exit code of the command that answers with this code.
    pub fn exit(self) -> u8 {
        match self {
            Code::ClaimHeld
            | Code::AlreadyDone
            | Code::AlreadyRun
            | Code::NothingEligible
            | Code::NotFound
            | Code::NotReady => 1,
            Code::Usage | Code::InvalidId | Code::InvalidPath => 2,
            Code::StaleClaim | Code::StaleVersion => 3,
            Code::IdempotencyConflict
            | Code::ReceiptConflict
            | Code::PathClash
            | Code::PoolFull
            | Code::QuotaUsed
            | Code::DependencyNotAccepted
            | Code::AttemptsExhausted
            | Code::SelfReview
            | Code::Failed
            | Code::Cancelled
            | Code::Expired
            | Code::Blocked => 4,
            Code::WaitTimeout => 5,
            Code::RecordUnreadable
            | Code::FormatTooNew
            | Code::StoreUnavailable
            | Code::SharedFileSystem
            | Code::NoSpace
            | Code::PermissionDenied
            | Code::Contended => 6,
            Code::NoStore | Code::AmbiguousStore => 7,
        }
    }
}

/// A question that could not be asked or answered. Nothing was changed unless the message says so.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: Code,
    message: String,
    hint: Option<String>,
    source: Option<io::Error>,
}

/// The result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with its code and one line that says what happened, with the path if there is one.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), hint: None, source: None }
    }

    /// Wrong usage: an argument that can't be taken.
    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(Code::Usage, message)
    }

    /// A system call on `path` that failed while the program was about to `action` ("read", "make" …).
    pub fn io(action: &str, path: &Path, source: io::Error) -> Error {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let code = match source.kind() {
            StorageFull | QuotaExceeded => Code::NoSpace,
            PermissionDenied | ReadOnlyFilesystem => Code::PermissionDenied,
            _ => Code::StoreUnavailable,
        };
        let error = Error::new(code, format!("cannot {action} {}: {source}", path.display()));
        let error = match code {
            Code::NoSpace => error.hint("free some space there, then try again; nothing was changed"),
            Code::PermissionDenied => {
                error.hint("give this user access to the claim directory, or name another with --dir")
            }
            _ => error,
        };
        Error { source: Some(source), ..error }
    }

    /// Adds what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// The code that decides the exit code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What to do next, if anything is known to help.
    pub fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
