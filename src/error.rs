//! Codes, exit codes and the one error type.
//!
//! Losing is not an error: a claim that somebody else holds is a [`Refusal`](crate::Refusal), a value. An
//! [`Error`] means that the question could not be asked or answered.

use std::io;
use std::path::Path;

macro_rules! codes {
    ($($(#[doc = $about:literal])+ $code:ident => $exit:literal, $name:literal;)+) => {
        /// Why a command did not say yes, as printed in the `code` field of a JSON answer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $about])+ $code,)+
        }

        impl Code {
            /// All of them, in the order of their exit codes.
            pub const ALL: &[Code] = &[$(Code::$code),+];

            /// The name in JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $(Code::$code => $name,)+
                }
            }

            /// The exit code of the command that answers with this code.
            pub fn exit(self) -> u8 {
                match self {
                    $(Code::$code => $exit,)+
                }
            }
        }
    };
}

codes! {
    /// Another claim on the node is live.
    ClaimHeld => 1, "CLAIM_HELD";
    /// The node has ended as done.
    AlreadyDone => 1, "ALREADY_DONE";
    /// An earlier call of the same request has taken the node to do the same work.
    AlreadyRun => 1, "ALREADY_RUN";
    /// There is nothing to take or to read.
    NothingEligible => 1, "NOTHING_ELIGIBLE";
    /// There is no such node.
    NotFound => 1, "NOT_FOUND";
    /// It is not time for that yet.
    NotReady => 1, "NOT_READY";
    /// The command line or an argument is wrong.
    Usage => 2, "USAGE";
    /// The text can't be an id.
    InvalidId => 2, "INVALID_ID";
    /// The text can't be a path to reserve.
    InvalidPath => 2, "INVALID_PATH";
    /// The token shown is not the live holder's.
    StaleClaim => 3, "STALE_CLAIM";
    /// The version shown is not the current one.
    StaleVersion => 3, "STALE_VERSION";
    /// The node has ended already, with another result.
    IdempotencyConflict => 4, "IDEMPOTENCY_CONFLICT";
    /// A task that this one waits for is not done and accepted.
    DependencyNotAccepted => 4, "DEPENDENCY_NOT_ACCEPTED";
    /// No attempts are left.
    AttemptsExhausted => 4, "ATTEMPTS_EXHAUSTED";
    /// Who did the work can't review it.
    SelfReview => 4, "SELF_REVIEW";
    /// Another claim has a path that clashes with one asked for.
    PathClash => 4, "PATH_CLASH";
    /// A pool asked for has no free slot.
    PoolFull => 4, "POOL_FULL";
    /// Not enough is left of a quota asked for.
    QuotaUsed => 4, "QUOTA_USED";
    /// The receipt's key was used for another request.
    ReceiptConflict => 4, "RECEIPT_CONFLICT";
    /// The node has ended as failed.
    Failed => 4, "FAILED";
    /// The node was cancelled.
    Cancelled => 4, "CANCELLED";
    /// The node's deadline has passed.
    Expired => 4, "EXPIRED";
    /// The node is blocked.
    Blocked => 4, "BLOCKED";
    /// A wait ended before its condition came true.
    WaitTimeout => 5, "WAIT_TIMEOUT";
    /// A record can't be read as one.
    RecordUnreadable => 6, "RECORD_UNREADABLE";
    /// A record or a directory is of a newer format.
    FormatTooNew => 6, "FORMAT_TOO_NEW";
    /// The file system failed.
    StoreUnavailable => 6, "STORE_UNAVAILABLE";
    /// The claim directory lies on a file system that several machines can write.
    SharedFileSystem => 6, "SHARED_FILE_SYSTEM";
    /// No space is left.
    NoSpace => 6, "NO_SPACE";
    /// The file system denied access.
    PermissionDenied => 6, "PERMISSION_DENIED";
    /// Too many writers at once; nothing was changed.
    Contended => 6, "CONTENDED";
    /// There is no claim directory here.
    NoStore => 7, "NO_STORE";
    /// There is more than one claim directory here.
    AmbiguousStore => 7, "AMBIGUOUS_STORE";
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
