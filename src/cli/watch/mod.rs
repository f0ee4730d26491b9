//! The parts of `claim watch`: a live board.
//!
//! ```text
//! run        one loop over keys, signals, what was read, and the clock
//!   reader   a thread that reads the directory, no more often than it can afford
//!     gather   a board, of what anybody may ask of a directory
//!     inside   one node
//!     past     what happened last
//!   screen   the terminal: its modes, what goes to it, what comes from it
//!     keys     what was typed
//! state      what the person who looks has chosen; pure
//! model      what the board shows, as data; pure
//!   row        one node of it
//! view       drawing into a buffer; pure
//!   panes      which columns there are, and what stands in them
//!   table      rows below a rule
//!   text       cut and wrapped by columns
//! ```

pub(super) mod gather;
mod help;
mod inside;
mod keys;
mod model;
mod panes;
pub(super) mod past;
mod reader;
mod row;
pub(super) mod run;
mod screen;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod view;
