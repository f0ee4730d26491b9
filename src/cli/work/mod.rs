//! The parts of `claim work`: a command for each task that comes up.
//!
//! ```text
//! slot     takes a task, runs the command, settles it, again; beside it a thread gets the next command's process ready
//! crew     what the slots share: what to take, how much of it, whose turn it is to wait, the sums
//! orders   how the worker is told to stop, and what a running command hears of that
//! tally    one line a task, and the sums
//! ```
//!
//! A slot is a thread, and what is under a slot is what is under `run`. Threads rather than processes: they share one
//! guard, one directory (of the slots only one at a time looks for work that is not there) and one sum, a kill ends them
//! all at once, and there is nobody to pass a signal on to. Rather than one loop over all commands: taking and settling
//! wait for the disk, and should hold up no other command's end or loss.

pub(super) mod crew;
pub(super) mod orders;
pub(super) mod slot;
pub(super) mod tally;
