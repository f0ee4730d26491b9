//! `claim run`.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;

use claimdir::domain::Bound;
use claimdir::{Acquire, Code, Directory, Error, Lease, Name, NodeId, Result};
use rustix::fs::{Access, Mode, OFlags, access};
use rustix::stdio;
use serde_json::{Value, json};

use super::acquire;
use crate::cli::args::{self, Then};
use crate::cli::context::Context;
use crate::cli::report::{Report, say};
use crate::cli::run::capture::{self, Output};
use crate::cli::run::guard::Guard;
use crate::cli::run::lookup;
use crate::cli::run::report::{self, Facts, Settled};
use crate::cli::run::settle::{self, End, Settlement};
use crate::cli::run::stub::Stub;
use crate::cli::run::supervise::{Ended, Exit, Hold, Supervisor, unwatched};
use crate::cli::run::terminal::Caller;
use crate::cli::text::harmless;

pub(crate) fn run(args: &args::Run, context: &Context) -> Report {
    reported(args, None, context)
}

/// `pool run`: in the first free slot of a pool, whichever node that is.
pub(crate) fn in_pool(args: args::PoolRun, context: &Context) -> Report {
    let (pool, args) = args.split();
    reported(&args, Some(&pool), context)
}

fn reported(args: &args::Run, pool: Option<&str>, context: &Context) -> Report {
    let mut facts = Facts::new(&args.id);
    let file = args.report.clone();
    match file.as_deref().map_or(Ok(()), |file| context.refuse_inside(file)) {
        Ok(()) => {
            let report = attempt(args, pool, context, &mut facts).unwrap_or_else(report::error);
            report.under(facts.fields()).apart(file)
        }
        Err(error) => report::error(error).under(facts.fields()).apart(None),
    }
}

/// What to take.
enum Target {
    Node(NodeId),
    /// Whichever slot of this pool is free.
    Slot(Name),
}

fn attempt(args: &args::Run, pool: Option<&str>, context: &Context, facts: &mut Facts) -> Result<Report> {
    let target = match pool {
        Some(pool) => Target::Slot(Name::new(pool)?),
        None => Target::Node(context.id(&args.id)?),
    };
    check_usage(args)?;
    let directory = context.directory_to_write_once(&args.once)?;
    let request = acquire::named(&args.taking, context, &directory)?.purpose(purpose(args));
    facts.owner = Some(context.owner(&directory)?.name);
    let program = args.command.first().map(OsString::as_os_str).unwrap_or_default();
    if let Some(why) = lookup::missing(program) {
        return Ok(report::not_started(&program.to_string_lossy(), &why.into()));
    }
    let (output, stdout) = output(args).map_err(|why| failed("make a pipe", &why))?;
    let stub = Stub::start(&args.command, stdout).and_then(Stub::ready);
    let stub = stub.map_err(|why| failed("start a process", &why))?;
    let request = bound(request, &directory, &stub);
    let answer = match &target {
        Target::Slot(pool) => {
            directory.acquire_slot(pool, &request, args.taking.terms.wait.unwrap_or_default())?
        }
        Target::Node(id) => acquire::take(&directory, id, &request, &args.taking)?,
    };
    let lease = match answer {
        Ok(lease) => lease,
        Err(refusal) => return Ok(report::not_claimed(&refusal)),
    };
    facts.id = lease.id().to_string();
    facts.acquired = Some(lease.acquired().clone());
    let lease = match lease.unless_replayed()? {
        Ok(lease) => lease,
        Err(refusal) => return Ok(report::not_claimed(&refusal)),
    };
    tell_claimed(&lease, context);
    let ended = supervise(args, context, &directory, &lease, stub, output)?;
    Ok(conclude(args, &directory, lease, ended, facts))
}

/// The request for a claim that lasts as long as this process and the stub's group.
pub(crate) fn bound(request: Acquire, directory: &Directory, stub: &Stub) -> Acquire {
    let group = stub.pid().as_raw_nonzero().get().unsigned_abs();
    // Where /proc does not show this process, the lease alone decides when the claim is over.
    match directory.host().process(std::process::id(), Some(group)) {
        Ok(process) => request.bound(Bound { process, until_exit: false }),
        Err(_) => request,
    }
}

/// What makes one run the same as another beside how the node is taken.
fn purpose(args: &args::Run) -> Value {
    let command: Vec<&[u8]> = args.command.iter().map(|word| word.as_encoded_bytes()).collect();
    let then = args.then.map(|then| then == Then::Complete);
    json!(["run", command, then, args.result_from_stdout, format!("{:?}", args.on_lost)])
}

/// What can be known to fail before anything is claimed.
fn check_usage(args: &args::Run) -> Result<()> {
    if args.result_from_stdout && args.then == Some(Then::Release) {
        return Err(Error::usage("--result-from-stdout completes the node, so not with --then release"));
    }
    let Some(file) = &args.report else { return Ok(()) };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if file.is_dir() || file.file_name().is_none() {
        return Err(Error::usage(format!("--report: {} is a folder", file.display())));
    }
    let writable = if file.exists() && !file.is_file() {
        access(file, Access::WRITE_OK)
    } else {
        access(folder, Access::WRITE_OK | Access::EXEC_OK)
    };
    writable.map_err(|why| Error::io("write", file, why.into()))
}

fn output(args: &args::Run) -> io::Result<(Option<Output>, Stdio)> {
    if !args.result_from_stdout {
        return Ok((None, Stdio::inherit()));
    }
    Output::pipe().map(|(output, stdout)| (Some(output), stdout))
}

pub(crate) fn failed(what: &str, why: &io::Error) -> Error {
    Error::new(Code::StoreUnavailable, format!("cannot {what}: {why}"))
}

/// The claim, without its token, for whoever watches.
fn tell_claimed(lease: &Lease, context: &Context) {
    if context.global.quiet || context.global.json {
        return;
    }
    let node = &lease.acquired().node;
    let owner = node.claim().map(|claim| claim.owner.as_str()).unwrap_or_default();
    let (id, owner) = (harmless(node.id.as_str()), harmless(owner));
    let line = format!("CLAIMED {id} by {owner} generation={} attempt={}", node.generation, node.attempt);
    say(&acquire::takeover_note(lease.acquired()).into_iter().chain([line]).collect::<Vec<_>>());
}

/// Lets the command run, and waits for its end.
fn supervise(
    args: &args::Run,
    context: &Context,
    directory: &Directory,
    lease: &Lease,
    stub: Stub,
    output: Option<Output>,
) -> Result<Ended> {
    let caller = Caller::of(stub.pid()).map_err(|why| unwatched(&why))?;
    let supervisor = Supervisor::new(directory, lease, stub.pid(), args.on_lost, caller)?;
    let capture = output.map(Output::pass_on).transpose().map_err(|why| failed("start a thread", &why))?;
    let dir = &context.dir_for_child();
    // Without one, as where processes can't be named, the lease has to end for those who outlive the command.
    let guard = supervisor.group().and_then(|group| {
        let mut guard = Guard::start().ok()?;
        guard.watch(group).ok().map(|()| (guard, group))
    });
    let started = stub.go(lease, dir, stdio::stdin()).map_err(|why| failed("start the command", &why))?;
    let_go(capture.is_none());
    let ended = supervisor.watch(started, capture);
    if let Some((guard, group)) = guard {
        guard.done(group);
        guard.dismiss();
    }
    Ok(ended)
}

/// Standard input, and output unless it is passed on, are the command's alone from now on: when it closes them,
/// whoever is at the other end shall see that.
fn let_go(output_too: bool) {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let Ok(null) = rustix::fs::open("/dev/null", flags, Mode::empty()) else { return };
    let _ = stdio::dup2_stdin(&null);
    if output_too {
        let _ = stdio::dup2_stdout(&null);
    }
}

/// Settles the claim as the command's end asks for.
fn conclude(
    args: &args::Run,
    directory: &Directory,
    lease: Lease,
    ended: Ended,
    facts: &mut Facts,
) -> Report {
    if ended.failed.is_none() {
        facts.exit = Some(ended.exit);
    }
    match ended.hold {
        Hold::Held => {}
        Hold::Settled => {
            facts.settled = Settled::Left;
            lease.leave();
            return facts.ended(ended.exit);
        }
        Hold::Lost(refusal) => {
            facts.lost = true;
            // The record may name by now who has it.
            let refusal = lease.check().ok().and_then(|answer| answer.err()).unwrap_or(refusal);
            lease.leave();
            return report::lost(&refusal);
        }
    }
    if let Some(why) = &ended.failed {
        let program = args.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
        let report = report::not_started(&program, why);
        return settle(directory, lease, End::Release, facts).unwrap_or(report);
    }
    let succeeded = matches!(ended.exit, Exit::Code(0));
    let result = match ended.capture.filter(|_| succeeded).map(|capture| capture::result(capture.take())) {
        Some(Err(why)) => {
            let report = facts.failed(&format!("no result was recorded: {why}"));
            return settle(directory, lease, End::Release, facts).unwrap_or(report);
        }
        Some(Ok(value)) => Some(value),
        None => None,
    };
    let is_task = lease.acquired().node.task.is_some();
    let end = match (succeeded, result, args.then) {
        (true, Some(result), _) => End::Complete(result),
        (true, None, Some(Then::Complete)) => End::Complete(Value::Null.into()),
        (true, None, None) if is_task => End::Complete(Value::Null.into()),
        (false, ..) if is_task => End::Retry(report::ending(ended.exit).1),
        _ => End::Release,
    };
    match settle(directory, lease, end, facts) {
        // The command's own failure is the news; without its process the claim is over anyway.
        Some(report) if succeeded || facts.lost => report,
        _ => facts.ended(ended.exit),
    }
}

/// Settles the claim. What went wrong, if anything did.
fn settle(directory: &Directory, lease: Lease, end: End, facts: &mut Facts) -> Option<Report> {
    let completes = matches!(end, End::Complete(_));
    match settle::settle(directory, lease, end) {
        Settlement::Settled(settled) => {
            facts.settled = settled;
            None
        }
        Settlement::Lost(refusal) => {
            facts.lost = true;
            Some(report::lost(&refusal))
        }
        // Output that is no result.
        Settlement::Not(unsettled) if completes && unsettled.error.code() == Code::Usage => {
            let report = facts.failed(&format!("no result was recorded: {}", unsettled.error));
            settle(directory, unsettled.lease, End::Release, facts).or(Some(report))
        }
        Settlement::Not(unsettled) => Some(report::error(unsettled.error)),
    }
}
