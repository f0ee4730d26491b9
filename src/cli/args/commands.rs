//! The commands, one row each: help text, arguments, name, other names, and what runs it.
//!
//! A command's arguments are described to the parser only once that command is the one that was named:
//! describing all of them would cost more than most commands do.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, FromArgMatches, Subcommand};

use super::*;
use crate::cli::command::{
    acquire, check, control, copy, doctor, graph, guard, guide, list, log, look, mail, mcp, outcome, page,
    place, pool, prime, run, scope, settle, setup, task, watch, work,
};
use crate::cli::context::Context;
use crate::cli::report::Report;

macro_rules! commands {
    ($($(#[doc = $about:literal])+ $variant:ident($args:ty), $name:expr, $others:expr => $run:expr;)+) => {
        #[derive(Debug)]
        pub(crate) enum Command {
            $($(#[doc = $about])+ $variant($args),)+
        }

        impl Command {
            /// Describes those to the parser of whose names `is_asked` says yes.
            pub(crate) fn describe(parent: clap::Command, is_asked: impl Fn(&str) -> bool) -> clap::Command {
                let mut parent = parent.subcommand_required(true).arg_required_else_help(true);
                $(if std::iter::once($name).chain($others).any(&is_asked) {
                    parent = parent.subcommand(
                        clap::Command::new($name)
                            .about(concat!($($about),+).trim_start())
                            .visible_aliases($others)
                            // Arguments that several commands share bring comments of their own.
                            .defer(|command| {
                                let command = <$args>::augment_args(command)
                                    .about(concat!($($about),+).trim_start());
                                match now::after($name) {
                                    Some(text) => command.after_help(text),
                                    None => command,
                                }
                            }),
                    );
                })+
                parent
            }

            /// Does what was asked for.
            pub(crate) fn run(self, context: &Context) -> Result<Report> {
                match self {
                    $(Command::$variant(args) => ($run as fn($args, &Context) -> Result<Report>)(args, context),)+
                }
            }
        }

        impl Subcommand for Command {
            fn augment_subcommands(parent: clap::Command) -> clap::Command {
                Command::describe(parent, |_| true)
            }

            fn augment_subcommands_for_update(parent: clap::Command) -> clap::Command {
                Command::augment_subcommands(parent)
            }

            fn has_subcommand(name: &str) -> bool {
                [$($name),+].contains(&name)
            }
        }

        impl FromArgMatches for Command {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Command, clap::Error> {
                match matches.subcommand() {
                    $(Some((name, matches)) if name == $name => {
                        <$args>::from_arg_matches(matches).map(Command::$variant)
                    })+
                    _ => Err(clap::Error::new(ErrorKind::MissingSubcommand)),
                }
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                Command::from_arg_matches(matches).map(|command| *self = command)
            }
        }
    };
}

/// No other names.
const NONE: [&str; 0] = [];

commands! {
    /// Take a node, making it if there is none
    Acquire(Acquire), "acquire", ["take"] => acquire::run;
    /// Take the first task that can be taken: by priority, then the oldest
    Next(Next), "next", NONE => acquire::next;
    /// Take a node, run a command, renewing meanwhile, and give the node back
    Run(Run), "run", NONE => |args, context| Ok(run::run(&args, context));
    /// Take tasks as they come up, run a command for each, and settle it by the command's end
    Work(Work), "work", NONE => work::run;
    /// Is this token the live holder's, are these paths free or its own? Ask just before a side effect
    Check(Check), "check", NONE => check::run;
    /// Let the lease end later
    Renew(Renew), "renew", NONE => settle::renew;
    /// Give the node back
    Release(Release), "release", NONE => settle::release;
    /// End the node as done and record its one result
    Complete(Complete), "complete", ["done"] => settle::complete;
    /// Give the node back with the attempt counted: to be taken after a backoff, failed after the last attempt
    Retry(Retry), "retry", NONE => settle::retry;
    /// End the node as failed: no attempt will help
    Reject(Reject), "reject", NONE => settle::reject;
    /// Submit a task, or find it there already
    Add(Add), "add", NONE => task::add;
    /// Accept a done task's outcome, or send it back
    Review(Review), "review", NONE => task::review;
    /// The recorded outcome of a node, once it has ended
    Result(Outcome), "result", NONE => outcome::result;
    /// Call a node off; whoever holds it has lost it
    Cancel(Cancel), "cancel", NONE => control::cancel;
    /// Keep a node that nobody holds from being taken
    Block(Block), "block", NONE => control::block;
    /// End a block
    Unblock(Named), "unblock", NONE => control::unblock;
    /// Let a node that has failed run again
    Requeue(Named), "requeue", NONE => control::requeue;
    /// Note something with a node
    Note(Note), "note", NONE => control::note;
    /// Say that somebody is interested in a task
    Join(Subscriber), "join", NONE => control::join;
    /// Say that somebody is not interested any more; that ends no task
    Detach(Subscriber), "detach", NONE => control::detach;
    /// Show one node
    Show(Node), "show", NONE => look::show;
    /// Say why a node can or can't be taken now
    Why(Node), "why", NONE => look::why;
    /// List the nodes
    List(List), "list", NONE => list::list;
    /// Draw what waits for what, as text for Mermaid or Graphviz
    Graph(Graph), "graph", NONE => graph::graph;
    /// Show what happened, the oldest first: to one node, to a scope's, to all
    Log(Log), "log", NONE => log::run;
    /// Write a page that shows who had what, and when: a timeline, what went wrong, and totals
    Report(Page), "report", NONE => page::run;
    /// Show a live board: what runs where, what waits for what, what failed
    Watch(Watch), "watch", NONE => watch::run;
    /// Messages in boxes: reading hands them out, and only the reader's own word moves on
    Mail(MailCommand), "mail", NONE => |args, context| mail::run(args.command, context);
    /// Pools of slots, of which claims take one each: `--pool`
    Pool(PoolCommand), "pool", NONE => |args, context| pool::run(args.command, context);
    /// Quotas, so much per so long, that claims use up: `--quota`
    Quota(QuotaCommand), "quota", NONE => |args, context| pool::quota(args.command, context);
    /// One run's keys apart from another's: cancel all of it, wait for so much of it, show it
    Scope(ScopeCommand), "scope", NONE => |args, context| scope::run(args.command, context);
    /// Have `next` and workers take nothing from a queue
    Pause(Pause), "pause", NONE => scope::pause;
    /// End a queue's pause
    Resume(Resume), "resume", NONE => scope::resume;
    /// Catch what is done on paths that another has reserved: for hooks of agents and of git
    Guard(GuardCommand), "guard", NONE => |args, context| guard::run(args.command, context);
    /// Tell an agent what it must know: what it holds, how to work, what is next
    Prime(Prime), "prime", NONE => prime::run;
    /// Serve one agent by the Model Context Protocol, on standard input and output
    Mcp(Mcp), "mcp", NONE => mcp::run;
    /// Teach an agent, git or CI about claims, by a marked block in the files they read
    Setup(Setup), "setup", NONE => setup::run;
    /// Say which claim directory is used and why, and who the owner is
    Where(Nothing), "where", NONE => |_, context| place::locate(context);
    /// Copy all there is to another claim directory, as from a folder to etcd; generations and tokens stay
    Copy(Copy), "copy", NONE => copy::run;
    /// Make the claim directory
    Init(Nothing), "init", NONE => |_, context| place::init(context);
    /// Check every record, receipt, roster, mailbox and hint
    Doctor(Doctor), "doctor", NONE => doctor::run;
    /// List the claims that are over. Nobody has to wait for this: whoever wants such a node takes it
    Reap(Reap), "reap", NONE => place::reap;
    /// Forget receipts whose time is over, messages that all their readers have acknowledged, and old results
    Prune(Prune), "prune", NONE => place::prune;
    /// Print a script that completes commands and options: bash, elvish, fish, powershell, zsh
    Completions(Completions), "completions", NONE => guide::completions;
    /// Print a manual page: `claim man | man -l -`
    Man(Man), "man", NONE => guide::man;
    /// Say all about a command: `claim help mail send`
    Help(Help), "help", NONE => guide::help;
    /// Say what this build can do: commands, options, variables, codes, limits
    Capabilities(Nothing), "capabilities", NONE => guide::capabilities;
}
