//! Reasons and notes.

use crate::error::{Error, Result};

/// What somebody has to say: a reason, a note. 1 to 4,096 bytes, and not only spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// The longest text, in bytes.
    pub const MAX_BYTES: usize = 4096;

    /// Takes `text`, which is `what` in words ("a reason"), refused if it is blank or too long
    /// ([`Code::Usage`](crate::Code::Usage)).
    pub fn new(what: &str, text: impl Into<String>) -> Result<Text> {
        let text = text.into();
        if text.trim().is_empty() {
            return Err(Error::usage(format!("{what} can't be blank")));
        }
        if text.len() > Text::MAX_BYTES {
            return Err(Error::usage(format!("{what} has at most {} bytes", Text::MAX_BYTES)));
        }
        Ok(Text(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
