//! `claim report`: a page for people.

use std::fs;
use std::path::Path;

use claimdir::{Code, Error, Result, Scope};
use serde_json::json;

use super::log::since_ms;
use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::page::{Author, page};
use crate::cli::report::{Report, offer, put_in_place};
use crate::cli::text::harmless;

pub(crate) fn run(args: args::Page, context: &Context) -> Result<Report> {
    let file = Some(args.html.as_path()).filter(|file| *file != Path::new("-"));
    match file {
        Some(file) => must_be_replaceable(file).and_then(|()| context.refuse_inside(file))?,
        None if context.global.json => {
            return Err(Error::usage("the page and --json can't both have standard output")
                .hint("write the page to a file"));
        }
        None => {}
    }
    let scope = context.scope()?;
    let directory = context.directory()?;
    let since = args.since.map(|since| since_ms(&directory, since));
    // The journal first: what it tells of, the records have got.
    let mut unread = Vec::new();
    let mut events = Vec::new();
    for event in directory.events(since)? {
        match event {
            Ok(event) if scope.is_none() || Scope::of(&event.id) == scope => events.push(event),
            Ok(_) => {}
            Err(error) => unread.push(error),
        }
    }
    let seen = match &scope {
        Some(scope) => directory.list_scope(scope)?,
        None => directory.list()?,
    };
    unread.extend(seen.unreadable.into_iter().map(|bad| bad.error));
    let mut author = Author::new(directory.host().now().wall_ms, since);
    events.into_iter().for_each(|event| author.event(event));
    for node in seen.nodes {
        let state = directory.standing(&node, |standing| standing.name());
        author.record(node, state);
    }
    let story = author.story(&directory.place(None));
    let (text, rows) = page(&story, directory.host().random()?);
    let shown = file.map_or("-".into(), Path::to_string_lossy);
    let nodes = story.nodes();
    let line = format!("WROTE {} nodes={nodes} rows={rows} bytes={}", harmless(&shown), text.len());
    let fields = json!({"file": shown, "nodes": nodes, "rows": rows, "bytes": text.len()});
    let mut report = Report::yes(line, fields);
    match file {
        Some(file) => put_in_place(file, text.as_bytes())?,
        None => {
            offer(text.as_bytes()).map_err(|e| Error::io("write", Path::new("standard output"), e))?;
            report = report.aside();
        }
    }
    for error in &unread {
        report = report.note(harmless(&error.to_string()).into_owned());
    }
    Ok(match unread.len() {
        0 => report,
        count => report.but(Code::RecordUnreadable, format!("left out, since they can't be read: {count}")),
    })
}

/// Nothing but a regular file is written over, and no link is followed.
fn must_be_replaceable(file: &Path) -> Result<()> {
    match fs::symlink_metadata(file) {
        Ok(there) if !there.is_file() => {
            Err(Error::usage(format!("{} is there and is no regular file", file.display())))
        }
        _ => Ok(()),
    }
}
