//! What records say: types only, and what follows from them alone.

mod blob;
mod history;
mod name;
mod node;
mod path;
mod request;
mod resources;
mod task;
mod token;

pub use blob::Blob;
pub(crate) use blob::Content;
pub use history::{Attempt, AttemptEnd, Note};
pub(in crate::domain) use history::{beginning, keep_newest};
pub use name::Name;
pub use node::{Block, Bound, Claim, Delay, Ending, Forced, Moment, Node, Outcome, State};
pub use path::RepoPath;
pub(crate) use path::{invalid as invalid_path, outside, refuse_pattern, without_stars};
pub(super) use request::canonical_hash;
pub use request::{Fingerprint, LastWrite};
pub(crate) use resources::Part;
pub use resources::Resources;
pub use task::{Lack, Need, Review, Task};
pub use token::{Token, TokenHash, WriteId};
