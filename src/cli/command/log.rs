//! `claim log`: what happened, as the journal has it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use claimdir::domain::Event;
use claimdir::time::{When, human, rfc3339, rfc3339_seconds};
use claimdir::{Code, Directory, Error, Events, NodeId, Refusal, Result, Scope};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::json;
use crate::cli::report::{Report, say};
use crate::cli::run::signals::Signals;
use crate::cli::text::harmless;

/// How long a look-out for more lasts at the most.
const NAP: Duration = Duration::from_secs(10);

/// How much a pipe that can be written to takes without waiting.
const PIPE: usize = 4096;

pub(crate) fn run(args: args::Log, context: &Context) -> Result<Report> {
    if args.follow && context.global.quiet && !context.global.json {
        let why = "--follow tells what happens until it is stopped, and --quiet tells nothing";
        return Err(Error::usage(why).hint("leave one of them out"));
    }
    let signals = if args.follow {
        Some(Signals::block_these([Signal::INT, Signal::TERM]).map_err(unheard)?)
    } else {
        None
    };
    let wanted =
        Wanted { id: args.id.as_deref().map(|id| context.id(id)).transpose()?, scope: context.scope()? };
    let directory = context.directory()?;
    let since_ms = args.since.map(|since| since_ms(&directory, since));
    if let Some(id) = &wanted.id
        && !is_known(&directory, id)?
    {
        return Ok(Report::refused(&Refusal::not_found(id)));
    }
    let mut events = directory.events(since_ms)?;
    let mut past =
        Past { limit: args.limit.unwrap_or(usize::MAX), events: VecDeque::new(), errors: Vec::new() };
    match signals {
        None => {
            past.read(&mut events, &wanted);
            Ok(past.report())
        }
        Some(signals) => {
            let out = Out { signals, json: context.global.json, quiet: context.global.quiet };
            follow(&mut events, &wanted, past, args.limit.is_some(), &out)
        }
    }
}

/// The earliest moment that is asked for: a duration says how long ago it was.
pub(crate) fn since_ms(directory: &Directory, since: When) -> i64 {
    match since {
        When::In(ago) => {
            let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
            directory.host().now().wall_ms.saturating_sub(ago)
        }
        When::At(at) => at,
    }
}

fn unheard(error: io::Error) -> Error {
    Error::new(Code::StoreUnavailable, format!("cannot listen for signals: {error}"))
}

/// Has the node a record, or is anything known to have happened to it?
fn is_known(directory: &Directory, id: &NodeId) -> Result<bool> {
    if !matches!(directory.node(id), Ok(None)) {
        return Ok(true);
    }
    Ok(directory.events(None)?.flatten().any(|event| event.id == *id))
}

/// Which events are asked for.
struct Wanted {
    id: Option<NodeId>,
    scope: Option<Scope>,
}

impl Wanted {
    fn has(&self, event: &Event) -> bool {
        match (&self.id, &self.scope) {
            (Some(id), _) => event.id == *id,
            (None, scope) => scope.is_none() || Scope::of(&event.id) == *scope,
        }
    }
}

/// What has happened: the newest, as many as are asked for.
struct Past {
    limit: usize,
    events: VecDeque<Event>,
    errors: Vec<Error>,
}

impl Past {
    fn read(&mut self, events: &mut Events<'_>, wanted: &Wanted) {
        for event in events {
            match event {
                Ok(event) if wanted.has(&event) => {
                    self.events.push_back(event);
                    if self.events.len() > self.limit {
                        self.events.pop_front();
                    }
                }
                Ok(_) => {}
                Err(error) => self.errors.push(error),
            }
        }
    }

    fn report(self) -> Report {
        let lines = self.events.iter().map(line).collect();
        let objects: Vec<Value> = self.events.iter().map(object).collect();
        let report = Report::yes(String::new(), json!({"events": objects})).lines(lines);
        let report = self.errors.iter().fold(report, |report, error| report.note(unreadable(error)));
        match self.errors.len() {
            0 => report,
            days => report.but(Code::RecordUnreadable, format!("days that can't be read: {days}")),
        }
    }
}

fn unreadable(error: &Error) -> String {
    harmless(&error.to_string()).into_owned()
}

fn object(event: &Event) -> Value {
    Value::Object(event.to_json())
}

/// An event for people.
pub(crate) fn line(event: &Event) -> String {
    let mut line = format!("{} {} {}", rfc3339(event.at_ms), event.what.name(), harmless(event.id.as_str()));
    let mut add = |name: &str, text: Option<&str>| {
        line.extend(text.map(|text| format!(" {name}{}", harmless(text))));
    };
    add("", event.accepted.map(|accepted| if accepted { "accepted" } else { "rejected" }));
    add("by ", event.by.as_deref());
    add("from ", event.from.as_deref());
    add("generation=", Some(&event.generation.to_string()));
    add("attempt=", Some(&event.attempt.to_string()));
    add("lease=", event.lease_ms.map(human).as_deref());
    add("not-before=", event.not_before_ms.map(rfc3339_seconds).as_deref());
    add("until=", event.until_ms.map(rfc3339_seconds).as_deref());
    line.extend(event.reason.as_ref().map(|reason| format!(": {}", harmless(reason))));
    line
}

/// Where events are told as they happen.
struct Out {
    signals: Signals,
    json: bool,
    quiet: bool,
}

/// Why nothing more is told.
enum Stopped {
    /// By a signal, or since nobody reads it.
    Well,
    Badly(io::Error),
}

fn follow(
    events: &mut Events<'_>,
    wanted: &Wanted,
    mut past: Past,
    only_newest: bool,
    out: &Out,
) -> Result<Report> {
    if only_newest {
        past.read(events, wanted);
    }
    let told = past.events.iter().try_for_each(|event| out.tell(event));
    let stopped = told.and_then(|()| {
        past.errors.iter().for_each(|error| out.note(error));
        loop {
            for event in &mut *events {
                match event {
                    Ok(event) if wanted.has(&event) => out.tell(&event)?,
                    Ok(_) => out.go_on()?,
                    Err(error) => out.note(&error),
                }
            }
            out.wait(events)?;
        }
    });
    match stopped {
        Ok(()) | Err(Stopped::Well) => Ok(Report::told()),
        Err(Stopped::Badly(error)) => Err(Error::new(
            Code::StoreUnavailable,
            format!("cannot write the answer to standard output: {error}"),
        )),
    }
}

impl Out {
    fn tell(&self, event: &Event) -> Result<(), Stopped> {
        let text =
            if self.json { json::line(&object(event)) } else { format!("{}\n", line(event)).into_bytes() };
        text.chunks(PIPE).try_for_each(|piece| self.write(piece))
    }

    fn note(&self, error: &Error) {
        if !self.quiet {
            say(&[unreadable(error)]);
        }
    }

    /// Writes when that doesn't wait: a reader that is slow must not keep a signal from being heard.
    fn write(&self, mut bytes: &[u8]) -> Result<(), Stopped> {
        let out = io::stdout();
        while !bytes.is_empty() {
            let mut fds = [PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&out, PollFlags::OUT)];
            match poll(&mut fds, None) {
                Err(e) if e != Errno::INTR => return Err(Stopped::Badly(e.into())),
                _ => {}
            }
            self.go_on()?;
            match rustix::io::write(&out, bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::PIPE) => return Err(Stopped::Well),
                Err(e) => return Err(Stopped::Badly(e.into())),
            }
        }
        Ok(())
    }

    /// Unless a signal has come.
    fn go_on(&self) -> Result<(), Stopped> {
        if self.signals.next().is_some() { Err(Stopped::Well) } else { Ok(()) }
    }

    /// Waits for more, for a signal, or for the reader to go away.
    fn wait(&self, events: &mut Events<'_>) -> Result<(), Stopped> {
        let out = io::stdout();
        let now = happening(out.as_fd());
        if now.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
            return Err(Stopped::Well);
        }
        // What can be read from, such as a terminal or a file, would end the wait at once.
        let readable = now.contains(PollFlags::IN).then_some(self.signals.as_fd());
        let both = [self.signals.as_fd(), out.as_fd()];
        events.wait(NAP, readable.as_ref().map_or(&both[..], std::slice::from_ref));
        self.go_on()
    }
}

fn happening(descriptor: BorrowedFd<'_>) -> PollFlags {
    let mut fds = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut fds, Some(&at_once)) {
        Ok(_) => fds[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}
