//! `claim mcp`.

use claimdir::Result;

use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::report::Report;

#[cfg(feature = "mcp")]
pub(crate) fn run(args: args::Mcp, context: &Context) -> Result<Report> {
    crate::cli::mcp::serve(args, context)
}

#[cfg(not(feature = "mcp"))]
pub(crate) fn run(_: args::Mcp, _: &Context) -> Result<Report> {
    Err(claimdir::Error::usage("this build has no MCP server").hint("build claim with --features mcp"))
}
