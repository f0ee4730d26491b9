//! `claim mail send`, `read`, `ack`, `list`.

use claimdir::domain::{Cursor, Letter, MailName, MailReason, MailRefusal, Mailbox, Message, Page, Sent};
use claimdir::time::{rfc3339, rfc3339_seconds};
use claimdir::{Code, Directory, Error, Result, Token};
use serde_json::{Value, json};

use super::settle::again;
use crate::cli::args::{self, Mail};
use crate::cli::context::Context;
use crate::cli::json::argument;
use crate::cli::report::{Report, word};
use crate::cli::text::{harmless, shell_word};

pub(crate) fn run(command: Mail, context: &Context) -> Result<Report> {
    match command {
        Mail::Send(args) => send(args, context),
        Mail::Read(args) => read(args, context),
        Mail::Ack(args) => ack(args, context),
        Mail::List(args) => list(args, context),
    }
}

fn send(args: args::MailSend, context: &Context) -> Result<Report> {
    let to = MailName::new(args.to)?;
    let payload = argument("PAYLOAD", &args.payload)?;
    let claim = match &args.claim {
        Some(node) => Some((context.id(node)?, Token::shown(token(args.token)?))),
        None => None,
    };
    let directory = context.directory_to_write_once(&args.once)?;
    let mut letter = Letter::new(name(args.by, context, &directory)?, payload);
    if let Some(key) = args.work_key {
        letter = letter.work_key(key)?;
    }
    if let Some((node, token)) = claim {
        letter = letter.under(node, token);
    }
    Ok(match directory.send(&to, &letter)? {
        Ok(sent) => told(&to, &sent),
        Err(refusal) => refused(&refusal),
    })
}

/// The claim's token, which alone of the claim's variables is taken without being asked for.
fn token(shown: Option<String>) -> Result<String> {
    let token = shown.or_else(|| std::env::var("CLAIM_TOKEN").ok()).filter(|token| !token.is_empty());
    token.ok_or_else(|| Error::usage("--claim needs the claim's token").hint("set CLAIM_TOKEN to it"))
}

/// Who sends or reads.
fn name(given: Option<String>, context: &Context, directory: &Directory) -> Result<String> {
    match given {
        Some(name) => Ok(name),
        None => Ok(context.owner(directory)?.name),
    }
}

fn told(to: &MailName, sent: &Sent) -> Report {
    let (box_name, from) = (harmless(to.as_str()), harmless(&sent.from));
    let line = format!("SENT {box_name} number={} by {from}{}", sent.number, again(sent.replay));
    let fields = json!({
        "box": to.as_str(),
        "number": sent.number,
        "from": sent.from,
        "sent_at": rfc3339(sent.sent_ms),
        "replay": sent.replay,
    });
    Report::yes(line, fields)
}

fn read(args: args::MailRead, context: &Context) -> Result<Report> {
    let of = MailName::new(args.of)?;
    let directory = context.directory_once(&args.once)?;
    let reader = MailName::new(name(args.by, context, &directory)?)?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let answer = match args.wait {
        Some(wait) => directory.await_mail(&of, &reader, limit, wait)?,
        None => directory.read_mail(&of, &reader, limit)?,
    };
    Ok(match answer {
        Ok(page) => shown(&of, &reader, &page),
        Err(refusal) => refused(&refusal),
    })
}

fn shown(of: &MailName, reader: &MailName, page: &Page) -> Report {
    let last = page.messages.last().map_or(page.handed_out, |message| message.number);
    let fields = json!({
        "box": of.as_str(),
        "reader": reader.as_str(),
        "messages": page.messages.iter().map(message_json).collect::<Vec<_>>(),
        "handed_out": page.handed_out,
        "acknowledged": page.acknowledged,
        "replay": page.replay,
    });
    let (of, reader) = (shell_word(of.as_str()), shell_word(reader.as_str()));
    let hint = format!("once they are dealt with: claim mail ack --as {reader} -- {of} {last}");
    let report = Report::yes(String::new(), fields).lines(page.messages.iter().map(message_line).collect());
    let report = match page.replay {
        true => report.note("this page was handed out before (replay)".to_owned()),
        false => report,
    };
    report.hint(hint)
}

fn message_line(message: &Message) -> String {
    let at = rfc3339_seconds(message.sent_ms);
    let payload = message.payload.to_string();
    format!("{} {} {at} {}", message.number, harmless(&message.from), harmless(&payload))
}

fn message_json(message: &Message) -> Value {
    let mut json = json!({
        "number": message.number,
        "payload": message.payload,
        "from": message.from,
        "sent_at": rfc3339(message.sent_ms),
    });
    if let Some(claim) = &message.claim {
        json["claim"] = json!({"id": claim.id.as_str(), "generation": claim.generation});
    }
    json
}

fn ack(args: args::MailAck, context: &Context) -> Result<Report> {
    let of = MailName::new(args.of)?;
    let directory = context.directory_once(&args.once)?;
    let reader = MailName::new(name(args.by, context, &directory)?)?;
    Ok(match directory.acknowledge(&of, &reader, args.number)? {
        Ok((cursor, replay)) => {
            let (box_name, by) = (harmless(of.as_str()), harmless(reader.as_str()));
            let line = format!("ACKNOWLEDGED {box_name} number={} by {by}{}", args.number, again(replay));
            let mut fields = cursor_json(&cursor);
            fields["box"] = json!(of.as_str());
            fields["replay"] = json!(replay);
            Report::yes(line, fields)
        }
        Err(refusal) => refused(&refusal),
    })
}

fn list(args: args::MailList, context: &Context) -> Result<Report> {
    let directory = context.directory()?;
    let Some(of) = args.of else { return list_all(&directory) };
    let of = MailName::new(of)?;
    let Some(found) = directory.mailbox(&of)? else {
        return Ok(refused(&MailRefusal { on: of, reason: MailReason::NotFound }));
    };
    let mut lines = vec![box_line(&found)];
    for Cursor { reader, handed_out, acknowledged, .. } in &found.readers {
        let reader = harmless(reader.as_str());
        lines.push(format!("  {reader} handed-out={handed_out} acknowledged={acknowledged}"));
    }
    Ok(Report::yes(String::new(), box_json(&found)).lines(lines))
}

fn list_all(directory: &Directory) -> Result<Report> {
    let seen = directory.mailboxes()?;
    let fields = json!({
        "boxes": seen.boxes.iter().map(box_json).collect::<Vec<_>>(),
        "unreadable": seen.unreadable.iter().map(error_json).collect::<Vec<_>>(),
    });
    let mut report = Report::yes(String::new(), fields).lines(seen.boxes.iter().map(box_line).collect());
    if seen.boxes.is_empty() {
        report = report.note("no boxes".to_owned());
    }
    for error in &seen.unreadable {
        report = report.note(harmless(&error.to_string()).into_owned());
    }
    Ok(match seen.unreadable.len() {
        0 => report,
        bad => report.but(Code::RecordUnreadable, format!("{bad} boxes can't be read")),
    })
}

fn error_json(error: &Error) -> Value {
    json!({"code": error.code().name(), "message": error.to_string()})
}

fn box_line(found: &Mailbox) -> String {
    let Mailbox { name, last, floor, readers } = found;
    let pruned = if *floor > 0 { format!(" pruned-to={floor}") } else { String::new() };
    format!("{} last={last} readers={}{pruned}", harmless(name.as_str()), readers.len())
}

fn box_json(found: &Mailbox) -> Value {
    json!({
        "box": found.name.as_str(),
        "last": found.last,
        "pruned_to": found.floor,
        "readers": found.readers.iter().map(cursor_json).collect::<Vec<_>>(),
    })
}

fn cursor_json(cursor: &Cursor) -> Value {
    json!({
        "reader": cursor.reader.as_str(),
        "handed_out": cursor.handed_out,
        "acknowledged": cursor.acknowledged,
    })
}

fn refused(refusal: &MailRefusal) -> Report {
    if let MailReason::Claim(stale) = &refusal.reason {
        return Report::refused(stale);
    }
    let (code, message, on) = (refusal.code(), refusal.message(), refusal.on.as_str());
    let mut fields = json!({"box": on});
    if let Some((handed_out, acknowledged)) = refusal.positions() {
        fields["handed_out"] = json!(handed_out);
        fields["acknowledged"] = json!(acknowledged);
    }
    let line = format!("{} {} — {}", word(code), harmless(on), harmless(&message));
    Report::yes(line, fields).but(code, message).hint(refusal.next_step())
}
