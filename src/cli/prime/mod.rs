//! What an agent must know: the words, with what is so now.

pub(super) mod state;
pub(super) mod words;
