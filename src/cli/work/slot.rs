//! One of a worker's slots: one task at a time.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};
use std::time::Duration;

use claimdir::domain::{Node, Text};
use claimdir::{Error, Lease};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use serde_json::Value;

use super::crew::{Crew, End};
use crate::cli::args::OnLost;
use crate::cli::command::run::{bound, failed};
use crate::cli::report::say;
use crate::cli::run::capture::{self, Output};
use crate::cli::run::report::{Settled, ending};
use crate::cli::run::settle::{self, Settlement};
use crate::cli::run::spool;
use crate::cli::run::stub::Stub;
use crate::cli::run::supervise::{Ended, Exit, Hold, Supervisor};
use crate::cli::text::harmless;

/// The exit code of a command for which no attempt will help: what it was given is at fault (EX_DATAERR).
const REJECTED: i32 = 65;

/// Pauses after errors.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);

/// Why a turn did not come to its end.
enum Trouble {
    /// The worker can't go on.
    Last(End),
    /// It may be over the next time.
    Passing(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        if error.code().is_hopeless() { Trouble::Last(End::Failed(error)) } else { Trouble::Passing(error) }
    }
}

/// A process that waits to become the command, with the pipe for its output.
struct Waiting {
    stub: Stub,
    output: Output,
}

impl Waiting {
    fn start(crew: &Crew) -> Result<Waiting, Trouble> {
        let start = || {
            let (output, stdout) = Output::pipe()?;
            Ok(Waiting { stub: Stub::start(&crew.command, stdout)?.ready()?, output })
        };
        start().map_err(|why: io::Error| Trouble::Passing(failed("start a process", &why)))
    }
}

/// Starts them on a thread of its own: that waits until the new process runs its program, which is time that the slot
/// has a use for. A process dies with the thread that started it, so this one lives as long as the slot.
struct Starter {
    ask: Sender<()>,
    started: Receiver<Result<Waiting, Trouble>>,
    asked: bool,
}

impl Starter {
    fn new<'scope>(scope: &'scope Scope<'scope, '_>, crew: &'scope Crew) -> io::Result<Starter> {
        let (ask, asked) = channel::<()>();
        let (answer, started) = channel();
        let start = move || {
            for () in asked {
                if answer.send(Waiting::start(crew)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("claim-starter".to_owned()).spawn_scoped(scope, start)?;
        Ok(Starter { ask, started, asked: false })
    }

    /// Has one started.
    fn ask(&mut self) {
        self.asked = self.asked || self.ask.send(()).is_ok();
    }

    /// The one that was asked for, or one now.
    fn get(&mut self) -> Result<Waiting, Trouble> {
        self.ask();
        self.asked = false;
        let gone =
            |_| Trouble::Last(End::Failed(failed("start a process", &io::Error::other("a thread died"))));
        self.started.recv().map_err(gone)?
    }
}

/// A slot's whole life.
pub(crate) fn work(crew: &Crew) {
    thread::scope(|scope| match Starter::new(scope, crew) {
        Ok(starter) => take_turns(crew, starter),
        Err(why) => crew.end(End::Failed(failed("start a thread", &why))),
    });
}

fn take_turns(crew: &Crew, mut starter: Starter) {
    let mut pause = SHORTEST;
    while crew.begin() {
        let mut begun = Begun { crew, taken: false };
        match turn(crew, &mut starter, &mut begun) {
            Ok(()) => pause = SHORTEST,
            Err(Trouble::Last(why)) => crew.end(why),
            Err(Trouble::Passing(error)) if crew.has_idled() => crew.end(End::Failed(error)),
            Err(Trouble::Passing(error)) => {
                say(&[format!("claim: {}", harmless(&error.to_string()))]);
                crew.orders.nap(pause);
                pause = (pause * 2).min(LONGEST);
            }
        }
    }
}

/// A task that counts as taken. Dropped before it was, it does not.
struct Begun<'a> {
    crew: &'a Crew,
    taken: bool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.taken {
            self.crew.begun_in_vain();
        }
    }
}

/// Takes a task, runs the command, settles it.
fn turn(crew: &Crew, starter: &mut Starter, begun: &mut Begun<'_>) -> Result<(), Trouble> {
    // The claim names the command's group, so that is there first.
    let next = starter.get()?;
    let acquire = bound(crew.acquire.clone(), &crew.directory, &next.stub);
    let Some((_busy, lease)) = crew.take(acquire)? else { return Ok(()) };
    begun.taken = true;
    crew.tally.taken(&lease);
    match run(crew, &lease, next, starter)? {
        Ran::Ended(ended) => conclude(crew, lease, ended),
        Ran::NoInput(why) => {
            let task = lease.acquired().node.clone();
            finish(crew, lease, &task, settle::End::Retry(why.clone()), Some(&why))
        }
    }
}

/// Lets the command run, and waits for its end. Meanwhile the next one's process gets ready.
fn run(crew: &Crew, lease: &Lease, next: Waiting, starter: &mut Starter) -> Result<Ran, Trouble> {
    let passing = |what: &'static str| move |why: io::Error| Trouble::Passing(failed(what, &why));
    let Waiting { stub, output } = next;
    let heard = crew.orders.heard(crew.shutdown_timeout);
    let supervisor = Supervisor::new(&crew.directory, lease, stub.pid(), OnLost::Kill, heard)?;
    let capture = output.keep().map_err(passing("read the command's output"))?;
    let input = match input(lease) {
        Ok(input) => input,
        Err(why) => return Ok(Ran::NoInput(format!("its input can't be read: {why}"))),
    };
    // Without a guard the lease has to end for those who outlive the command.
    let group = supervisor.group().filter(|group| crew.guard(*group).is_ok());
    let started = stub.go(lease, &crew.dir, input.as_fd()).map_err(passing("start the command"))?;
    if crew.goes_on() {
        starter.ask();
    }
    let ended = supervisor.watch(started, Some(capture));
    if let Some(group) = group {
        crew.unguard(group);
    }
    Ok(Ran::Ended(ended))
}

/// What became of the command.
enum Ran {
    Ended(Ended),
    /// It was not started, and why: this attempt is over all the same, or such a task would come up for ever.
    NoInput(String),
}

/// The task's input as a file to read, a line of JSON; one that is too large for memory comes as it is.
fn input(lease: &Lease) -> io::Result<OwnedFd> {
    let task = lease.acquired().node.task.as_ref();
    let mut file = match task.and_then(|task| task.input_blob.as_ref()) {
        Some(_) => spool::unnamed()?,
        None => File::from(memfd_create("claim-input", MemfdFlags::CLOEXEC)?),
    };
    let mut input = lease.open_input().map_err(io::Error::other)?;
    io::copy(&mut input, &mut file)?;
    file.write_all(b"\n")?;
    file.rewind()?;
    Ok(file.into())
}

/// Settles the task as the command's end asks for.
fn conclude(crew: &Crew, lease: Lease, ended: Ended) -> Result<(), Trouble> {
    let task = lease.acquired().node.clone();
    match ended.hold {
        Hold::Held => {}
        Hold::Settled => {
            lease.leave();
            crew.tally.settled(&task, Settled::Left, None);
            return Ok(());
        }
        Hold::Lost(refusal) => {
            // The record may name by now who has it.
            let refusal = lease.check().ok().and_then(|answer| answer.err()).unwrap_or(refusal);
            lease.leave();
            crew.tally.lost(&task, &refusal);
            return Ok(());
        }
    }
    if let Some(why) = ended.failed {
        finish(crew, lease, &task, settle::End::Release, Some("the command could not be started"))?;
        return Err(not_started(why));
    }
    if ended.stopped {
        return finish(crew, lease, &task, settle::End::Release, Some("the worker was stopped"));
    }
    let how = ending(ended.exit).1;
    match ended.exit {
        Exit::Code(0) => match ended.capture.map(|capture| capture::result(capture.take())) {
            Some(Err(why)) => {
                let why = format!("no result was recorded: {why}");
                finish(crew, lease, &task, settle::End::Retry(why.clone()), Some(&why))
            }
            Some(Ok(result)) => finish(crew, lease, &task, settle::End::Complete(result), None),
            None => finish(crew, lease, &task, settle::End::Complete(Value::Null.into()), None),
        },
        Exit::Code(REJECTED) => {
            let reason = Text::new("a reason", how.clone())?;
            finish(crew, lease, &task, settle::End::Reject(reason), Some(&how))
        }
        _ => finish(crew, lease, &task, settle::End::Retry(how.clone()), Some(&how)),
    }
}

/// Whether that will be so the next time too.
fn not_started(why: io::Error) -> Trouble {
    let passing = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::TXTBSY, Errno::IO];
    if passing.iter().any(|errno| why.raw_os_error() == Some(errno.raw_os_error())) {
        return Trouble::Passing(failed("start the command", &why));
    }
    Trouble::Last(End::NotStarted(why))
}

/// Settles the task, again and again while its lease lasts and nobody is in a hurry.
fn finish(
    crew: &Crew,
    mut lease: Lease,
    task: &Node,
    mut end: settle::End,
    why: Option<&str>,
) -> Result<(), Trouble> {
    let mut why = why.map(str::to_owned);
    let mut pause = SHORTEST;
    loop {
        let unsettled = match settle::settle(&crew.directory, lease, end.clone()) {
            Settlement::Settled(how) => {
                crew.tally.settled(task, how, why.as_deref());
                return Ok(());
            }
            Settlement::Lost(refusal) => {
                crew.tally.lost(task, &refusal);
                return Ok(());
            }
            Settlement::Not(unsettled) => unsettled,
        };
        let error = unsettled.error;
        lease = unsettled.lease;
        if error.code().is_hopeless() && matches!(end, settle::End::Complete(_)) {
            // A result that no record can hold.
            let reason = format!("no result was recorded: {error}");
            why = Some(reason.clone());
            end = settle::End::Retry(reason);
            continue;
        }
        if error.code().is_hopeless() || crew.orders.is_hurried() {
            return Err(Trouble::Last(End::Failed(error)));
        }
        say(&[format!("claim: {}", harmless(&error.to_string()))]);
        if let Some(refusal) = lease.lost() {
            crew.tally.lost(task, &refusal);
            return Ok(());
        }
        let left = lease.remaining().unwrap_or(LONGEST);
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(LONGEST);
    }
}
