//! The arguments of `list` and `graph`.

use claimdir::domain::Node;
use claimdir::{Name, Result};

/// Which nodes are meant.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Filter {
    /// Only nodes in this state now; `ready` is what can be taken. May be given several times
    #[arg(long = "state", value_enum, value_name = "STATE")]
    pub(crate) states: Vec<StateFilter>,
    /// Only tasks of this queue; may be given several times
    #[arg(long = "queue", value_name = "NAME")]
    pub(crate) queues: Vec<String>,
    /// Only tasks of this project; may be given several times
    #[arg(long = "project", value_name = "NAME")]
    pub(crate) projects: Vec<String>,
}

impl Filter {
    /// Refuses what is no name, which nothing could be of.
    pub(crate) fn check(&self) -> Result<()> {
        self.queues.iter().chain(&self.projects).try_for_each(|name| Name::new(name.as_str()).map(drop))
    }

    /// Is the node a task of the queues and the projects that were asked for, if any were?
    pub(crate) fn wants(&self, node: &Node) -> bool {
        let task = node.task.as_ref();
        let is_of = |asked: &[String], name: Option<&Name>| {
            asked.is_empty() || name.is_some_and(|name| asked.iter().any(|asked| asked == name.as_str()))
        };
        is_of(&self.queues, task.map(|task| &task.queue))
            && is_of(&self.projects, task.and_then(|task| task.project.as_ref()))
    }

    pub(crate) fn wants_state(&self, state: StateFilter) -> bool {
        self.states.is_empty() || self.states.contains(&state)
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// In this order, else in that of the ids as text
    #[arg(long, value_enum, value_name = "KEY")]
    pub(crate) sort: Option<Order>,
    /// In the order's reverse
    #[arg(long, short)]
    pub(crate) reverse: bool,
    /// Instead of nodes the paths that are reserved, with the node and the holder of each
    #[arg(long, conflicts_with_all = ["states", "queues", "projects", "sort", "reverse"])]
    pub(crate) paths: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Graph {
    /// Only what this task depends on, and what depends on it
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// What draws it
    #[arg(long, value_enum, default_value = "mermaid")]
    pub(crate) format: Format,
}

/// What draws a graph.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A flowchart, as in Markdown
    Mermaid,
    /// A digraph, for Graphviz
    Dot,
}

/// What nodes are ordered by; those that have none of it come last, and alike ones in the natural order of their ids.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// TK-2 before TK-10
    Id,
    /// 0 first; as `next` takes them
    Priority,
    /// The oldest submission first; a bare key's claim counts
    Age,
    /// From ready to expired
    State,
    /// The holder's name
    Owner,
    /// The lease that ends next first
    Expires,
}

// The states that `list` tells apart. No doc comment: it would be sent to every agent that lists the tools.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "mcp", derive(serde::Deserialize, rmcp::schemars::JsonSchema))]
#[cfg_attr(feature = "mcp", serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "mcp", schemars(crate = "rmcp::schemars", rename = "State"))]
pub(crate) enum StateFilter {
    Ready,
    Waiting,
    Claimed,
    Blocked,
    Done,
    Failed,
    Cancelled,
    Expired,
}

impl StateFilter {
    /// The name, as filters and answers have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            StateFilter::Ready => "ready",
            StateFilter::Waiting => "waiting",
            StateFilter::Claimed => "claimed",
            StateFilter::Blocked => "blocked",
            StateFilter::Done => "done",
            StateFilter::Failed => "failed",
            StateFilter::Cancelled => "cancelled",
            StateFilter::Expired => "expired",
        }
    }
}
