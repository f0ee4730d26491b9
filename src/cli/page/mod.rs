//! The page that `claim report` writes.
//!
//! ```text
//! story     what happened, as rows and bars, from the journal and the records
//! totals    how many, how long, what went wrong
//! axis      moments as places on a line, and the marks on it
//! html      the page: the only place where text becomes markup
//! ```

mod axis;
mod html;
mod story;
mod totals;

pub(super) use html::page;
pub(super) use story::Author;
