//! The arguments of `prime`.

use clap::ValueEnum;

use super::Agent;

/// Tell an agent what it must know.
///
/// It is less than 2 KB, the most important first: a claim that it has lost, what it holds, how to work, what is next and
/// which mail waits. Where no claim directory is used it says nothing. If the state can't be read within a second, it says
/// the rest.
#[derive(clap::Args, Debug)]
pub(crate) struct Prime {
    /// For whom
    #[arg(long, value_enum, default_value = "worker")]
    pub(crate) role: Role,
    /// As the hook of this agent, whose call, JSON on standard input, says which session it is and where
    #[arg(long, value_enum, value_name = "AGENT")]
    pub(crate) hook: Option<Agent>,
}

/// What an agent is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// It takes work and does it
    Worker,
    /// It accepts others' work, or sends it back
    Reviewer,
    /// It says what there is to do
    Lead,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Worker => "worker",
            Role::Reviewer => "reviewer",
            Role::Lead => "lead",
        }
    }
}
