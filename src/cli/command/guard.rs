//! `claim guard`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use claimdir::{Error, Refusal, Result, Token};
use serde_json::{Value, json};

use super::settle::shown;
use crate::cli::args::{self, GitHook, Guard};
use crate::cli::bounded::{Turn, bounded};
use crate::cli::context::Context;
use crate::cli::guard::call::{Call, denial, told_on_stdin};
use crate::cli::guard::judge::{self, Case, Judge, Verdict};
use crate::cli::guard::{Mode, git};
use crate::cli::json::line;
use crate::cli::report::{Report, say, word};
use crate::cli::text::harmless;

/// More clashes than this are counted only.
const SHOWN: usize = 20;

pub(crate) fn run(command: Guard, context: &Context) -> Result<Report> {
    let (mode, bad) = Mode::wanted();
    let noted = |report: Report| bad.iter().fold(report, |report, note| report.note(note.clone()));
    let late = || noted(allowed().note("claim guard: not decided within a second; allowed".to_owned()));
    let token = match &command {
        Guard::Path(args) => {
            if args.files.iter().any(|file| file.is_empty()) {
                return Err(Error::usage("a file's name is empty; the current folder is `.`"));
            }
            args.token.as_deref().filter(|token| !token.is_empty()).map(shown).transpose()?
        }
        _ => judge::shown_token(),
    };
    if mode == Mode::Off {
        return Ok(allowed());
    }
    let notes: Vec<String> = bad.iter().cloned().collect();
    Ok(bounded(context, late, move |context, turn| {
        let asked = Asked { context, turn, mode, token, notes };
        match command {
            Guard::Path(args) => asked.path(&args),
            Guard::Hook(_) => asked.hook(),
            Guard::Git(args) => asked.git(&args),
        }
    }))
}

fn allowed() -> Report {
    Report::yes(String::new(), json!({"allowed": true})).lines(Vec::new())
}

/// A question, and how it is to be answered.
struct Asked<'a> {
    context: &'a Context,
    turn: &'a Turn,
    mode: Mode,
    token: Option<Token>,
    notes: Vec<String>,
}

impl Asked<'_> {
    fn say(&self, report: Report) {
        let noted = self.notes.iter().fold(report, |report, note| report.note(note.clone()));
        self.turn.answer(self.context, noted);
    }

    fn unclear(&mut self, why: &str) {
        self.notes.push(format!("claim guard: {}; allowed", harmless(why)));
    }

    /// `None`: there is nothing to guard, and that has been answered.
    fn opened<T>(&mut self, opened: Result<T>, is_unused: impl Fn(&T) -> bool) -> Option<T> {
        match opened {
            Ok(opened) if !is_unused(&opened) => return Some(opened),
            Ok(_) => self.notes.clear(),
            Err(error) => self.unclear(&error.to_string()),
        }
        self.say(allowed());
        None
    }

    /// Who judges `files`.
    fn cases(&mut self, session: Option<&str>, files: &[OsString], through: bool) -> Option<Vec<Case>> {
        let cases = judge::cases(self.context, self.token.take(), session, files, through);
        self.opened(cases, Vec::is_empty)
    }

    fn verdict(&mut self, judged: Result<Verdict>) -> Vec<Refusal> {
        match judged {
            Ok(verdict) => {
                self.notes.extend(verdict.notes);
                verdict.clashes
            }
            Err(error) => {
                self.unclear(&error.to_string());
                Vec::new()
            }
        }
    }

    /// Says what was refused, with `exit`, or as a note where it is only to be told.
    fn refuse(&mut self, refused: &[Refusal], exit: Option<u8>) {
        let Some(first) = refused.first() else { return self.say(allowed()) };
        if self.mode == Mode::Warn {
            let would = |refusal: &Refusal| format!("claim guard: would be refused: {}", sentence(refusal));
            self.notes.extend(refused.iter().take(SHOWN).map(would));
            return self.say(allowed());
        }
        let mut lines: Vec<String> = refused.iter().take(SHOWN).map(told).collect();
        if refused.len() > SHOWN {
            lines.push(format!("and {} more", refused.len() - SHOWN));
        }
        let fields =
            json!({"allowed": false, "clashes": refused.iter().filter_map(clash_json).collect::<Vec<_>>()});
        let report = Report::refused(first).lines(lines).and_fields(fields);
        self.say(match exit {
            // Standard output of git is for what git says.
            Some(exit) => report.exiting(exit).aside(),
            None => report,
        });
    }

    fn path(mut self, args: &args::GuardPath) {
        let Some(cases) = self.cases(None, &args.files, true) else { return };
        let clashes: Vec<Refusal> = cases.iter().flat_map(|case| self.verdict(case.judged())).collect();
        self.refuse(&clashes, None);
    }

    fn hook(mut self) {
        let call = told_on_stdin().and_then(|bytes| Call::parse(&bytes));
        if let Some(folder) = call.as_ref().ok().and_then(|call| call.folder.as_deref()) {
            judge::go(Path::new(folder));
        }
        let session = call.as_ref().ok().and_then(|call| call.session.clone());
        let written = call.map(|call| call.written(&Path::is_dir));
        let (files, through) =
            written.as_ref().map_or((&[][..], false), |written| (&written.files, written.through));
        let Some(cases) = self.cases(session.as_deref(), files, through) else { return };
        if let Some(why) = written.map_or_else(Some, |written| written.unclear) {
            self.unclear(&why);
        }
        let clashes: Vec<Refusal> = cases.iter().flat_map(|case| self.verdict(case.judged())).collect();
        match clashes.first() {
            Some(clash) if self.mode == Mode::Refuse => self.deny(clash),
            _ => self.refuse(&clashes, None),
        }
        // After the answer: whatever becomes of this, it stands.
        let Some(here) = cases.iter().find(|case| case.is_here) else { return };
        match here.judge.renew(self.context) {
            Ok(None) => {}
            Ok(Some(lost)) => say(&[format!("claim guard: {}", sentence(&lost))]),
            Err(error) => say(&[format!("claim guard: not renewed: {}", harmless(&error.to_string()))]),
        }
    }

    /// The protocol's answer is all of standard output, whatever options say.
    fn deny(&self, clash: &Refusal) {
        let reason = format!("claim: {}. Next: {}", sentence(clash), harmless(&clash.next_step()));
        let answer = denial(&reason);
        self.say(match self.context.global.json {
            true => allowed().and_fields(json!({"allowed": false})).and_fields(answer),
            false => Report::raw(line(&answer)),
        });
    }

    fn git(mut self, args: &args::GuardGit) {
        // Git's refs are read before anything else, or git is told that its pipe was closed.
        let told = match args.hook {
            GitHook::PreCommit => Ok(Vec::new()),
            GitHook::PrePush => told_on_stdin(),
        };
        let opened = Judge::open(self.context, self.token.take(), None);
        let Some(Some(judge)) = self.opened(opened, Option::is_none) else { return };
        let names = match args.hook {
            GitHook::PreCommit => git::staged(self.turn),
            GitHook::PrePush => told.and_then(|told| {
                let told =
                    String::from_utf8(told).map_err(|_| "git's refs are not valid UTF-8".to_owned())?;
                git::pushed(self.turn, args.given.first().map(OsString::as_os_str), &told)
            }),
        };
        let names = names.unwrap_or_else(|why| {
            self.unclear(&why);
            BTreeSet::new()
        });
        let paths: Vec<_> = names.iter().filter_map(|name| judge.file_of_tree(name)).collect();
        let mut refused = match judge.lost(self.context) {
            Ok(lost) => lost.into_iter().collect(),
            Err(error) => {
                self.unclear(&error.to_string());
                Vec::new()
            }
        };
        refused.extend(self.verdict(judge.judge(&paths)));
        self.refuse(&refused, Some(1));
    }
}

fn told(refusal: &Refusal) -> String {
    let (word, id) = (word(refusal.code()), harmless(refusal.id.as_str()));
    format!("{word} {id} — {}", harmless(&refusal.message()))
}

fn sentence(refusal: &Refusal) -> String {
    let message = refusal.message();
    match refusal.path_clash() {
        Some(_) => harmless(&message).into_owned(),
        None => format!("{}: {}", harmless(refusal.id.as_str()), harmless(&message)),
    }
}

fn clash_json(refusal: &Refusal) -> Option<Value> {
    let clash = refusal.path_clash()?;
    Some(json!({
        "path": clash.path.as_str(),
        "reserved": clash.reserved.as_str(),
        "node": clash.node.as_str(),
        "owner": clash.holder.as_ref().map(|holder| &holder.owner),
    }))
}
