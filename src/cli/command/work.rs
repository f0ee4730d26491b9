//! `claim work`.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use claimdir::{Error, Next, Result};
use rustix::event::{EventfdFlags, eventfd, poll};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::{Map, Value};

use super::acquire;
use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::report::Report;
use crate::cli::run::capture::raise;
use crate::cli::run::signals::Signals;
use crate::cli::run::supervise::{readable, unwatched};
use crate::cli::run::{lookup, report};
use crate::cli::work::crew::{Crew, End, Limits};
use crate::cli::work::slot;
use crate::cli::work::tally::Tally;

/// How many descriptors a slot has open at the most, two processes' and the directory's among them.
const DESCRIPTORS: u64 = 24;

pub(crate) fn run(args: args::Work, context: &Context) -> Result<Report> {
    if args.terms.wait.is_some() {
        let wrong = Error::usage("`work` waits for tasks anyway, so not with --wait");
        return Err(wrong.hint("--idle-exit=10s says for how long"));
    }
    let directory = context.directory_to_write()?;
    let acquire = acquire::request(&args.terms, context, &directory)?;
    let next = acquire::in_lane(Next::of(acquire.clone()), args.lane, context)?;
    let program = args.command.first().cloned().unwrap_or_default();
    if let Some(why) = lookup::missing(&program) {
        return Ok(not_started(&program, &why.into()));
    }
    let limits = Limits { max: args.max, idle_exit: args.idle_exit, shutdown_timeout: args.shutdown_timeout };
    let dir = context.dir_for_child();
    let tally = Tally::new(&context.global);
    let crew = Crew::new(directory, dir, args.command, acquire, next, tally, limits);
    let crew = crew.map_err(|why| unwatched(&why))?;
    let started = work(&crew, args.concurrency).map_err(|why| unwatched(&why));
    crew.directory.tidy();
    let (tally, end) = crew.ended();
    let report = match (started, end) {
        (Err(error), _) | (_, Some(End::Failed(error))) => Report::error(error),
        (_, Some(End::NotStarted(why))) => not_started(&program, &why),
        (Ok(()), None) => Report::yes(String::new(), Value::Null).lines(Vec::new()),
    };
    let sums = match tally.fields() {
        Value::Object(sums) => sums,
        _ => Map::new(),
    };
    Ok(report.under(sums))
}

fn not_started(program: &OsString, why: &io::Error) -> Report {
    report::not_started(&program.to_string_lossy(), why)
}

/// Lets the slots work, and tells them of signals, until all have come to their end.
fn work(crew: &Crew, slots: u16) -> io::Result<()> {
    let signals = Signals::block_these([Signal::TERM, Signal::INT])?;
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let (all_ended, left) = (eventfd(0, flags)?, AtomicUsize::new(usize::from(slots)));
    let ends = || {
        if left.fetch_sub(1, Ordering::AcqRel) == 1 {
            raise(&all_ended);
        }
    };
    make_room(u64::from(slots));
    thread::scope(|scope| {
        let mut started = Ok(());
        for _ in 0..slots {
            let slot = || {
                slot::work(crew);
                ends();
            };
            let thread = thread::Builder::new().name("claim-slot".to_owned()).spawn_scoped(scope, slot);
            if let Err(why) = thread {
                started = Err(why);
                crew.orders.drain();
                ends();
            }
        }
        while left.load(Ordering::Acquire) > 0 {
            let _ = poll(&mut [readable(signals.as_fd()), readable(all_ended.as_fd())], None);
            while signals.next().is_some() {
                crew.orders.stop();
            }
        }
        started
    })
}

/// Many slots need more descriptors than a process usually gets at first.
fn make_room(slots: u64) {
    let limit = getrlimit(Resource::Nofile);
    let need = slots * DESCRIPTORS + 64;
    if limit.current.is_some_and(|now| now < need) {
        let most = limit.maximum.map_or(need, |most| most.min(need));
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit });
    }
}
