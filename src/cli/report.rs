//! One answer, for people and for programs, printed in one place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use claimdir::domain::{Became, Blob, Holder, Reason};
use claimdir::time::{human, rfc3339};
use claimdir::{Code, Error, Halt, NodeId, Nothing, Opened, Refusal};
use serde_json::{Map, Value, json};

use super::context::Context;
use super::json;
use super::stream;
use super::suggest;
use super::text::harmless;

/// The version of the JSON answers.
const SCHEMA: u64 = 1;

/// What `run` exits with where it failed itself: all other codes may be its command's.
pub(crate) const FAILED: u8 = 125;

/// What a command has to say.
pub(crate) struct Report {
    exit: u8,
    /// Lines for people, on standard output.
    lines: Vec<String>,
    /// On standard error.
    notes: Vec<String>,
    /// What to do next: on standard error, or a field of the JSON answer.
    hint: Option<String>,
    /// The JSON answer's own fields.
    fields: Map<String, Value>,
    /// Do the lines go to standard error, as for an error or where a shell reads standard output?
    aside: bool,
    /// Is standard output somebody else's? Then all goes to standard error, the object last.
    apart: bool,
    /// Where the object goes, whatever else is told.
    file: Option<PathBuf>,
    /// A value that is too large to be held: all of standard output for people, and this field of the object.
    streamed: Option<(&'static str, Opened)>,
    /// Has all been told already?
    told: bool,
    /// All of standard output, instead of lines and object, whatever options say.
    raw: Option<Vec<u8>>,
    /// Is the directory not to be looked for, not even to be named?
    unplaced: bool,
    /// What to take back if the answer can't be told.
    untold: Option<Box<dyn FnOnce() -> claimdir::Result<()>>>,
}

impl Report {
    /// Yes.
    pub(crate) fn yes(line: String, fields: Value) -> Report {
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Report { lines: vec![line], fields, ..Report::empty() }
    }

    /// No, and why.
    pub(crate) fn refused(refusal: &Refusal) -> Report {
        let code = refusal.code();
        let message = refusal.message();
        let id = harmless(refusal.id.as_str()).into_owned();
        let line = format!("{} {id} — {}", word(code), harmless(&message));
        let mut fields = Map::new();
        fields.insert("code".to_owned(), json!(code.name()));
        fields.insert("message".to_owned(), json!(message));
        fields.insert("id".to_owned(), json!(refusal.id.as_str()));
        fields.insert("version".to_owned(), json!(refusal.version));
        fields.insert("generation".to_owned(), json!(refusal.generation));
        if let Some(holder) = refusal.holder() {
            fields.insert("holder".to_owned(), holder_json(holder));
        }
        if let Some(clash) = refusal.path_clash() {
            fields.insert("path".to_owned(), json!(clash.path.as_str()));
            fields.insert("reserved".to_owned(), json!(clash.reserved.as_str()));
            fields.insert("node".to_owned(), json!(clash.node.as_str()));
        }
        if let Some(full) = refusal.pool_full() {
            fields.insert("pool".to_owned(), json!(full.pool.as_str()));
            fields.insert("slots".to_owned(), json!(full.slots));
            fields.insert("used".to_owned(), json!(full.used));
            fields.insert("node".to_owned(), json!(full.node.as_str()));
        }
        if let Some(short) = refusal.quota_used() {
            fields.insert("quota".to_owned(), json!(short.quota.as_str()));
            fields.insert("limit".to_owned(), json!(short.rate.limit()));
            fields.insert("period_ms".to_owned(), json!(short.rate.period_ms()));
            fields.insert("used".to_owned(), json!(short.used));
            fields.insert("asked".to_owned(), json!(short.asked));
            fields.insert("remaining_ms".to_owned(), json!(short.free_in_ms));
        }
        match &refusal.reason {
            Reason::StaleVersion { seen } => {
                fields.insert("seen".to_owned(), json!(seen));
            }
            Reason::AlreadyRun { became, .. } => {
                fields.insert("replay".to_owned(), json!(true));
                fields.insert("became".to_owned(), json!(became.name()));
                if let Became::Ended(_, outcome) = became {
                    fields.insert("result".to_owned(), outcome.result.clone());
                    if let Some(Blob { bytes, hash, .. }) = &outcome.blob {
                        fields.insert("result_blob".to_owned(), json!({"bytes": bytes, "hash": hash}));
                    }
                    fields.insert("reason".to_owned(), json!(outcome.reason));
                }
            }
            _ => {}
        }
        let report = Report { exit: code.exit(), lines: vec![line], fields, ..Report::empty() };
        report.hint(refusal.next_step())
    }

    /// Yes, and nothing is left to be said.
    pub(crate) fn told() -> Report {
        Report { told: true, ..Report::empty() }
    }

    /// Yes, in words of another protocol.
    pub(crate) fn raw(bytes: Vec<u8>) -> Report {
        Report { raw: Some(bytes), ..Report::empty() }
    }

    /// There is nothing to take, and why, as far as that is known.
    pub(crate) fn nothing(nothing: &Nothing) -> Report {
        if let Some(refusal) = &nothing.barred {
            return Report::refused(refusal);
        }
        let code = nothing.code();
        if let Some(halt) = &nothing.cancelled {
            return Report::cancelled(halt);
        }
        let mut message = "nothing can be taken now".to_owned();
        if let Some(halt) = &nothing.paused {
            message = format!("{message}; the queue {} is paused {}", halt.name, halt.by_and_why());
        }
        if let Some(refusal) = &nothing.refused {
            message = format!("{message}; {}: {}", refusal.id, refusal.message());
        }
        if let Some((id, why)) = nothing.unreadable.first_key_value() {
            let more = match nothing.unreadable.len() - 1 {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            message = format!("{message}; {id} may be next, and that can't be told: {why}{more}");
        }
        if let Some(ms) = nothing.due_in_ms {
            message = format!("{message}; something may come up in {}", human(ms));
        }
        let mut fields = json!({"code": code.name(), "message": message, "due_in_ms": nothing.due_in_ms});
        if !nothing.unreadable.is_empty() {
            let row = |(id, why): (&NodeId, &String)| json!({"id": id.as_str(), "message": why});
            fields["unreadable"] = nothing.unreadable.iter().map(row).collect();
        }
        if let Some(halt) = &nothing.paused {
            fields["paused"] = halt_json(halt);
        }
        let word = if nothing.waited { "waited in vain" } else { "nothing" };
        let hint = match &nothing.paused {
            Some(_) => "--wait waits until it is resumed",
            None if !nothing.unreadable.is_empty() => "`claim doctor` lists all that can't be read",
            None => "`claim list --state waiting` shows what waits, and for what; --wait waits for it",
        };
        Report::yes(format!("{word} — {}", harmless(&message)), fields).exiting(code.exit()).hint(hint)
    }

    /// Nothing happens any more in a scope that was cancelled.
    pub(crate) fn cancelled(halt: &Halt) -> Report {
        let message = format!("the scope {} was cancelled {}", halt.name, halt.by_and_why());
        let code = Code::Cancelled;
        let fields = json!({"code": code.name(), "message": message, "scope": halt.name.as_str()});
        let line = format!("{} — {}", word(code), harmless(&message));
        Report::yes(line, fields).exiting(code.exit()).hint("use another scope")
    }

    /// The question could not be answered.
    pub(crate) fn error(error: Error) -> Report {
        let code = error.code();
        let line = format!("claim: {}", harmless(&error.to_string()));
        let mut fields = Map::new();
        fields.insert("code".to_owned(), json!(code.name()));
        fields.insert("message".to_owned(), json!(error.to_string()));
        let report = Report { exit: code.exit(), lines: vec![line], fields, aside: true, ..Report::empty() };
        match error.next_step() {
            Some(hint) => report.hint(hint),
            None => report,
        }
    }

    fn empty() -> Report {
        Report {
            exit: 0,
            lines: Vec::new(),
            notes: Vec::new(),
            hint: None,
            fields: Map::new(),
            aside: false,
            apart: false,
            file: None,
            streamed: None,
            told: false,
            raw: None,
            unplaced: false,
            untold: None,
        }
    }

    /// With these fields of its own.
    pub(crate) fn with_fields(mut self, fields: Value) -> Report {
        if let Value::Object(fields) = fields {
            self.fields = fields;
        }
        self
    }

    /// With these fields, too.
    pub(crate) fn and_fields(mut self, fields: Value) -> Report {
        if let Value::Object(fields) = fields {
            self.fields.extend(fields);
        }
        self
    }

    /// Of an id that is no node's, which one may have been meant.
    pub(crate) fn suggest(mut self, context: &Context) -> Report {
        let is = |name: &str, value: Value| self.fields.get(name) == Some(&value);
        // A token shown to a node that is not there is stale.
        let is_unknown = is("code", json!(Code::NotFound.name()))
            || (is("code", json!(Code::StaleClaim.name())) && is("version", json!(0)));
        let asked = self.fields.get("id").filter(|_| is_unknown).and_then(Value::as_str);
        let Some(asked) = asked.and_then(|id| NodeId::new(id).ok()) else { return self };
        let ids = context.directory().and_then(|directory| directory.ids()).unwrap_or_default();
        if let Some(meant) = suggest::like(&asked, &ids).filter(|meant| **meant != asked) {
            let hint = self.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            self.hint = Some(format!("did you mean {meant}?{hint}"));
            self.fields.insert("did_you_mean".to_owned(), json!(meant.as_str()));
        }
        self
    }

    /// What to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Report {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn lines(mut self, lines: Vec<String>) -> Report {
        self.lines = lines;
        self
    }

    pub(crate) fn note(mut self, note: String) -> Report {
        self.notes.push(note);
        self
    }

    /// Answers no all the same, with this code.
    pub(crate) fn but(mut self, code: Code, message: String) -> Report {
        self.exit = code.exit();
        self.fields.insert("message".to_owned(), json!(message));
        self.fields.insert("code".to_owned(), json!(code.name()));
        self
    }

    /// Ends with this exit code.
    pub(crate) fn exiting(mut self, exit: u8) -> Report {
        self.exit = exit;
        self
    }

    /// Puts `fields` first in the object; where both name a field, `fields` has the say.
    pub(crate) fn under(mut self, mut fields: Map<String, Value>) -> Report {
        for (name, value) in std::mem::take(&mut self.fields) {
            fields.entry(name).or_insert(value);
        }
        self.fields = fields;
        self
    }

    /// Leaves standard output alone, and writes the object to `file` too.
    pub(crate) fn apart(mut self, file: Option<PathBuf>) -> Report {
        self.apart = true;
        self.file = file;
        self
    }

    /// Puts the lines on standard error.
    pub(crate) fn aside(mut self) -> Report {
        self.aside = true;
        self
    }

    /// Doesn't look for the directory any more: that may take long.
    pub(crate) fn unplaced(mut self) -> Report {
        self.unplaced = true;
        self
    }

    /// What to take back if nobody can be told.
    pub(crate) fn or_else(mut self, untold: impl FnOnce() -> claimdir::Result<()> + 'static) -> Report {
        self.untold = Some(Box::new(untold));
        self
    }

    /// Standard output has this value, and the lines go to standard error; in the object it is the field `name`.
    pub(crate) fn streaming(mut self, name: &'static str, value: Opened) -> Report {
        self.streamed = Some((name, value));
        self.aside()
    }

    /// Prints the answer; the exit code is what came of that.
    pub(crate) fn deliver(mut self, context: &Context) -> u8 {
        if self.told {
            return self.exit;
        }
        if self.apart {
            return self.deliver_apart(context);
        }
        let global = &context.global;
        let failed = self.exit != 0;
        let evaluated = failed && context.is_evaluated();
        self.aside |= evaluated;
        if self.aside && (failed || !(global.quiet || global.json)) {
            say(&self.lines);
        }
        let told = if let Some(raw) = &self.raw {
            tell(raw)
        } else if global.json {
            if !self.unplaced {
                let _ = context.located(); // an answer names the directory also where nothing was asked of it
            }
            let dir = context.dir().map(|dir| dir.to_string_lossy());
            let streamed = self.streamed.take();
            let object = self.object(dir.as_deref());
            match streamed {
                None => tell(&json::line(&object)),
                Some((name, value)) => stdout().and_then(|out| stream::object_with(object, name, value, out)),
            }
        } else if let Some((_, value)) = self.streamed.take().filter(|_| !global.quiet) {
            stdout().and_then(|out| stream::whole(value, out))
        } else if evaluated {
            tell(export_nothing(self.exit).as_bytes())
        } else if self.aside || global.quiet {
            Ok(())
        } else {
            tell(self.lines.iter().flat_map(|line| [line, "\n"]).collect::<String>().as_bytes())
        };
        if !global.quiet {
            let made = context.note().map(str::to_owned);
            let hint = self.hint.as_deref().filter(|_| !global.json);
            let hint = hint.map(|hint| format!("hint: {}", harmless(hint)));
            say(&made.into_iter().chain(std::mem::take(&mut self.notes)).chain(hint).collect::<Vec<_>>());
        }
        match told {
            Ok(()) => self.exit,
            // Whoever reads it has seen enough.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe && self.untold.is_none() => self.exit,
            Err(e) => {
                say(&[match e.kind() {
                    io::ErrorKind::InvalidData => format!("claim: {}", harmless(&e.to_string())),
                    _ => format!("claim: cannot write the answer to standard output: {e}"),
                }]);
                if let Some(Err(e)) = self.untold.take().map(|untold| untold()) {
                    let left = "claim: the claim could not be given back and lasts until its lease ends";
                    say(&[format!("{left}: {}", harmless(&e.to_string()))]);
                }
                if self.exit == 0 { Code::StoreUnavailable.exit() } else { self.exit }
            }
        }
    }

    fn deliver_apart(mut self, context: &Context) -> u8 {
        let (quiet, json) = (context.global.quiet, context.global.json);
        let dir = context.dir().map(|dir| dir.to_string_lossy());
        let object = json::line(&self.object(dir.as_deref()));
        if !json && (!quiet || (self.aside && self.exit != 0)) {
            say(&self.lines);
        }
        if !json && !quiet {
            let hint = self.hint.iter().map(|hint| format!("hint: {}", harmless(hint)));
            say(&context
                .note()
                .map(str::to_owned)
                .into_iter()
                .chain(self.notes)
                .chain(hint)
                .collect::<Vec<_>>());
        }
        let written = self.file.map_or(Ok(()), |file| write_whole(&file, &object));
        if let Err(error) = &written {
            say(&[format!("claim: {}", harmless(&error.to_string()))]);
        }
        if json {
            let _ = io::stderr().lock().write_all(&object);
        }
        if written.is_err() && self.exit == 0 { FAILED } else { self.exit }
    }

    fn object(&mut self, dir: Option<&str>) -> Value {
        let mut object = Map::new();
        object.insert("ok".to_owned(), json!(self.exit == 0));
        object.insert("schema".to_owned(), json!(SCHEMA));
        object.insert("dir".to_owned(), json!(dir));
        object.extend(std::mem::take(&mut self.fields));
        if let Some(hint) = &self.hint {
            object.insert("hint".to_owned(), json!(hint));
        }
        Value::Object(object)
    }
}

/// An answer for a protocol that has its own way of telling it.
#[cfg(feature = "mcp")]
pub(crate) struct Answer {
    pub(crate) exit: u8,
    /// The JSON answer.
    pub(crate) object: Map<String, Value>,
    /// Lines for people, the notes and what to do next.
    pub(crate) lines: Vec<String>,
    /// What to take back if the answer can't be told.
    pub(crate) untold: Option<Box<dyn FnOnce() -> claimdir::Result<()>>>,
}

#[cfg(feature = "mcp")]
impl Report {
    /// Has it waited in vain?
    pub(crate) fn is_in_vain(&self) -> bool {
        self.exit == Code::WaitTimeout.exit()
    }

    /// Changes the object's own fields, and says in these lines what is left.
    pub(crate) fn shorten(mut self, shorten: impl FnOnce(&mut Map<String, Value>) -> Vec<String>) -> Report {
        self.lines = shorten(&mut self.fields);
        self
    }

    /// The answer, to be told elsewhere.
    pub(crate) fn answer(mut self, context: &Context) -> Answer {
        let _ = context.located(); // an answer names the directory also where nothing was asked of it
        let dir = context.dir().map(|dir| dir.to_string_lossy());
        let object = match self.object(dir.as_deref()) {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        let hint = self.hint.iter().map(|hint| format!("hint: {}", harmless(hint)));
        let notes = context.note().map(str::to_owned).into_iter().chain(self.notes);
        let mut lines = self.lines;
        lines.extend(notes.chain(hint));
        Answer { exit: self.exit, object, lines, untold: self.untold }
    }
}

/// The first word of a refusal.
pub(crate) fn word(code: Code) -> &'static str {
    match code {
        Code::NotFound => "unknown",
        Code::NothingEligible => "nothing",
        _ => match code.exit() {
            1 => "lost",
            3 => "stale",
            5 => "waited",
            _ => "refused",
        },
    }
}

/// Who stopped something, when and why.
pub(crate) fn halt_json(halt: &Halt) -> Value {
    json!({"by": halt.by, "reason": halt.reason, "at": rfc3339(halt.at.wall_ms)})
}

pub(crate) fn holder_json(holder: &Holder) -> Value {
    json!({
        "owner": holder.owner,
        "generation": holder.generation,
        "expires_at": rfc3339(holder.expires_ms),
        "remaining_ms": holder.remaining_ms,
        "engine": holder.engine.as_ref().map(|engine| engine.as_str()),
    })
}

/// Writes a file whole or not at all; into a pipe or a device it just writes.
fn write_whole(path: &Path, bytes: &[u8]) -> claimdir::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        let file = OpenOptions::new().write(true).open(path);
        return file.and_then(|mut file| file.write_all(bytes)).map_err(|e| Error::io("write", path, e));
    }
    put_in_place(path, bytes)
}

/// Writes a file whole or not at all, over one that is there.
pub(crate) fn put_in_place(path: &Path, bytes: &[u8]) -> claimdir::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let new = path.with_file_name(name);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&new)
        .map_err(|e| Error::io("write", path, e))?;
    file.write_all(bytes).and_then(|()| fs::rename(&new, path)).map_err(|e| {
        let _ = fs::remove_file(&new);
        Error::io("write", path, e)
    })
}

/// What a shell evaluates where there is no claim to export: it forgets an earlier one, or what comes next would be
/// done with that, and goes on as after a failure.
fn export_nothing(exit: u8) -> String {
    format!(
        "unset CLAIM_ID CLAIM_TOKEN CLAIM_GENERATION CLAIM_ATTEMPT CLAIM_INPUT CLAIM_INPUT_FILE; (exit {exit})\n"
    )
}

/// Text for standard output, all of it or an error. The library's own handle takes a descriptor that can't be
/// written for one that nobody reads.
pub(crate) fn tell(bytes: &[u8]) -> io::Result<()> {
    stdout()?.write_all(bytes)
}

/// The same for a reader that may have seen enough before the end.
pub(crate) fn offer(bytes: &[u8]) -> io::Result<()> {
    match tell(bytes) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        told => told,
    }
}

fn stdout() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Lines for standard error, if anybody reads that.
pub(crate) fn say(lines: &[String]) {
    let mut err = io::stderr().lock();
    for line in lines {
        let _ = writeln!(err, "{line}");
    }
}

/// Wrong usage, or a text that was asked for. No context is known yet; `of_run`: it was wrong usage of `run`.
pub(crate) fn usage(error: &clap::Error, of_run: bool) -> ExitCode {
    let asked_for = !error.use_stderr();
    let given =
        |option: &str| std::env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == option);
    let json = given("--json");
    if asked_for {
        let failed = offer(error.to_string().as_bytes()).is_err();
        return ExitCode::from(if failed { Code::StoreUnavailable.exit() } else { 0 });
    }
    let text = error.to_string();
    say(&text.trim_end().lines().map(|line| harmless(line).into_owned()).collect::<Vec<_>>());
    if json {
        let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
        let message = lines.join(" ");
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        let hint = "`claim --help` and `claim COMMAND --help` say what there is";
        let object = json::line(&json!({
            "ok": false, "schema": SCHEMA, "dir": null,
            "code": Code::Usage.name(), "message": message, "hint": hint,
        }));
        let _ = if of_run { io::stderr().lock().write_all(&object) } else { tell(&object) };
    }
    let exit = if of_run { FAILED } else { Code::Usage.exit() };
    if given("--export") && !json {
        let _ = tell(export_nothing(exit).as_bytes());
    }
    ExitCode::from(exit)
}
