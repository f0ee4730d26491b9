//! `claim completions`, `man`, `capabilities`: about the program itself. They need no claim directory.

use std::fs;
use std::path::Path;

use claimdir::domain::{Blob, FORMAT, Submission, Task, Text};
use claimdir::time::{MAX_LEASE, MIN_LEASE};
use claimdir::{Code, Error, Name, NodeId, Result};
use clap::CommandFactory;
use clap_complete::aot;
use serde_json::{Map, Value, json};

use crate::cli::args::{self, Args, Shell};
use crate::cli::context::Context;
use crate::cli::report::Report;
use crate::cli::suggest;
use crate::cli::text::harmless;

/// All commands with all their arguments.
fn whole() -> clap::Command {
    let mut command = Args::command();
    command.build();
    command
}

pub(crate) fn completions(args: args::Completions, _: &Context) -> Result<Report> {
    let mut script = Vec::new();
    let shell = match args.shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Elvish => aot::Shell::Elvish,
        Shell::Fish => aot::Shell::Fish,
        Shell::Powershell => aot::Shell::PowerShell,
        Shell::Zsh => aot::Shell::Zsh,
    };
    aot::generate(shell, &mut whole(), "claim", &mut script);
    Ok(text("script", &script))
}

pub(crate) fn man(args: args::Man, _: &Context) -> Result<Report> {
    let whole = whole();
    if let Some(folder) = &args.out {
        let mut files = Vec::new();
        write_pages(&whole, folder, &mut files)?;
        let line = format!("{} pages written to {}", files.len(), harmless(&folder.to_string_lossy()));
        return Ok(Report::yes(line, json!({"files": files})));
    }
    Ok(text("page", &page(named(&whole, &args.command)?)?))
}

/// The same as with `--help`.
pub(crate) fn help(args: args::Help, _: &Context) -> Result<Report> {
    named(&whole(), &args.command)?;
    let asked = ["claim"].into_iter().chain(args.command.iter().map(String::as_str)).chain(["--help"]);
    let told = Args::command().try_get_matches_from(asked);
    Ok(text("help", told.err().map(|help| help.render().to_string()).unwrap_or_default().as_bytes()))
}

/// The command that `parts` name.
fn named<'a>(whole: &'a clap::Command, parts: &[String]) -> Result<&'a clap::Command> {
    let mut named = whole;
    for part in parts {
        let unknown = || {
            let names = named.get_subcommands().flat_map(clap::Command::get_name_and_visible_aliases);
            let like = suggest::word(part, names).map(|like| format!("; did you mean `{like}`?"));
            Error::usage(format!(
                "there is no command `{part}` under `{}`{}",
                named.get_name(),
                like.unwrap_or_default()
            ))
        };
        named = named.find_subcommand(part).ok_or_else(unknown)?;
    }
    Ok(named)
}

/// The page of a command. What renders it writes to memory, which does not fail.
fn page(command: &clap::Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let name = command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-");
    let version = concat!("claim ", env!("CARGO_PKG_VERSION"));
    let man = clap_mangen::Man::new(command.clone()).title(name).date(version).source(version);
    man.render(&mut page).map_err(|e| Error::io("render", Path::new("the page"), e))?;
    Ok(page)
}

fn write_pages(command: &clap::Command, folder: &Path, files: &mut Vec<String>) -> Result<()> {
    let name = command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-");
    let file = folder.join(format!("{name}.1"));
    fs::write(&file, page(command)?).map_err(|e| Error::io("write", &file, e))?;
    files.push(file.to_string_lossy().into_owned());
    command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .try_for_each(|sub| write_pages(sub, folder, files))
}

/// A text that is all of standard output, or this field of the answer.
fn text(field: &str, bytes: &[u8]) -> Report {
    let text = String::from_utf8_lossy(bytes);
    let fields = Map::from_iter([(field.to_owned(), json!(text))]);
    Report::yes(text.trim_end().to_owned(), Value::Object(fields))
}

/// What this build can do: for programs that want to know before they ask.
pub(crate) fn capabilities(_: args::Nothing, _: &Context) -> Result<Report> {
    let whole = whole();
    let commands: Vec<Value> = whole.get_subcommands().map(described).collect();
    let codes: Map<String, Value> =
        Code::ALL.iter().map(|code| (code.name().to_owned(), json!(code.exit()))).collect();
    let limits = json!({
        "id_bytes": NodeId::MAX_BYTES,
        "name_bytes": Name::MAX_BYTES,
        "title_bytes": Task::MAX_TITLE,
        "text_bytes": Text::MAX_BYTES,
        "value_bytes": Blob::MAX_BYTES,
        "attempts": Submission::MAX_ATTEMPTS,
        "min_lease_ms": MIN_LEASE.as_millis() as u64,
        "max_lease_ms": MAX_LEASE.as_millis() as u64,
    });
    let global = whole.get_arguments().filter(|argument| argument.is_global_set());
    let global: Vec<String> = global.filter_map(|it| Some(format!("--{}", it.get_long()?))).collect();
    let version = env!("CARGO_PKG_VERSION");
    let names: Vec<&str> = whole.get_subcommands().map(clap::Command::get_name).collect();
    let lines = vec![
        format!("claim {version}, records of format {FORMAT}"),
        format!("commands: {}", names.join(" ")),
        "--json has their options, the variables, the codes and the limits".to_owned(),
    ];
    let told = |(name, about): &(&str, &str)| ((*name).to_owned(), json!(about));
    let exits: Map<String, Value> = EXITS.iter().map(told).collect();
    let variables: Map<String, Value> = VARIABLES.iter().map(told).collect();
    let fields = json!({
        "version": version,
        "format": FORMAT,
        "features": FEATURES,
        "commands": commands,
        "everywhere": global,
        "variables": variables,
        "codes": codes,
        "exits": exits,
        "limits": limits,
    });
    Ok(Report::yes(String::new(), fields).lines(lines))
}

/// What was built in beside the default.
const FEATURES: &[&str] = &[
    #[cfg(feature = "etcd")]
    "etcd",
    #[cfg(feature = "mcp")]
    "mcp",
    #[cfg(feature = "testing")]
    "testing",
];

fn described(command: &clap::Command) -> Value {
    let is_own = |argument: &&clap::Arg| {
        !argument.is_hide_set() && !argument.is_global_set() && !argument.get_id().as_str().eq("help")
    };
    let name = |argument: &clap::Arg| match (argument.get_long(), argument.get_value_names()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some([name, ..])) => name.to_string(),
        (None, _) => argument.get_id().as_str().to_uppercase(),
    };
    let arguments: Vec<String> = command.get_arguments().filter(is_own).map(name).collect();
    let subcommands: Vec<Value> = command.get_subcommands().map(described).collect();
    let usage = command.clone().render_usage().to_string();
    let mut described = json!({
        "name": command.get_name(),
        "aliases": command.get_visible_aliases().collect::<Vec<_>>(),
        "about": command.get_about().map(ToString::to_string),
        "usage": usage.trim_start_matches("Usage: "),
        "arguments": arguments,
    });
    if !subcommands.is_empty() {
        described["commands"] = json!(subcommands);
    }
    described
}

/// What exit codes mean.
const EXITS: &[(&str, &str)] = &[
    ("0", "yes"),
    ("1", "no: somebody else's, or nothing there"),
    ("2", "wrong usage"),
    ("3", "fenced: the claim is lost or the version is not current; stop working on it"),
    ("4", "refused: it contradicts what is recorded"),
    ("5", "waited in vain"),
    ("6", "the store"),
    ("7", "no claim directory, or two"),
    ("75", "run: not claimed, so the command did not run"),
    ("76", "run: the lease was lost, and the command stopped or its result refused"),
    ("125", "run: any other failure of its own, wrong usage included"),
    ("126", "run, work: the command can't be executed"),
    ("127", "run, work: the command was not found"),
];

/// The variables that are read, and those that commands get.
const VARIABLES: &[(&str, &str)] = &[
    ("CLAIMS_DIR", "the claim directory, for --dir; also set for commands"),
    ("CLAIM_OWNER", "who claims, for --owner"),
    ("CLAUDE_CODE_SESSION_ID", "the owner where none is named"),
    ("CODEX_THREAD_ID", "the owner where none is named"),
    ("CLAIM_ID", "the node; also set for commands and by --export"),
    ("CLAIM_TOKEN", "the claim's token; also set for commands and by --export"),
    ("CLAIM_GENERATION", "set for commands and by --export: the claim's generation"),
    ("CLAIM_ATTEMPT", "set for commands and by --export: which attempt at a task it is"),
    ("CLAIM_INPUT", "set by --export: a task's input"),
    ("CLAIM_INPUT_FILE", "set by --export: the file of an input that is too large for a variable"),
    ("CLAIM_RECEIPT", "for --receipt"),
    ("CLAIM_LEASE", "for --lease"),
    ("CLAIM_SCOPE", "for --scope"),
    ("CLAIM_QUEUE", "for --queue"),
    ("CLAIM_ENGINE", "for --engine"),
    ("CLAIM_NO_SYNC", "1: as --no-sync"),
    ("CLAIM_ALLOW_SHARED_FS", "1: as --allow-shared-fs"),
    ("CLAIM_MAX_SKEW", "on etcd: for --max-skew"),
    ("CLAIM_ETCD_PASSWORD", "on etcd: the password"),
    ("CLAIM_GUARD", "warn: guards tell and allow; off: they ask nothing"),
    ("CLAIM_PATIENCE", "for tests: how long guards and prime wait, instead of a second"),
    ("NO_COLOR", "no colours in watch"),
];
