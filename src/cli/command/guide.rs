//! `claim completions`, `man`, `capabilities`: about the program itself. They need no claim directory.

use std::fs;
use std::path::Path;

use claimdir::domain::FORMAT;
use claimdir::time::{MAX_LEASE, MIN_LEASE};
use claimdir::{Code, Error, Name, NodeId, Result};
use clap::CommandFactory;
use clap_complete::aot;
use serde_json::{Map, Value, json};

use crate::cli::args::{self, Args, Shell};
use crate::cli::context::Context;
use crate::cli::report::Report;
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
    let mut named = &whole;
    for part in &args.command {
        let unknown = || Error::usage(format!("there is no command `{part}` under `{}`", named.get_name()));
        named = named.find_subcommand(part).ok_or_else(unknown)?;
    }
    Ok(text("page", &page(named)?))
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
        "--json has their options, the codes and the limits".to_owned(),
    ];
    let fields = json!({
        "version": version,
        "format": FORMAT,
        "features": FEATURES,
        "commands": commands,
        "everywhere": global,
        "codes": codes,
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
    let own = command.get_arguments().filter(|argument| !argument.is_hide_set() && !argument.is_global_set());
    let arguments: Vec<String> = own
        .map(|argument| match argument.get_long() {
            Some(long) => format!("--{long}"),
            None => argument.get_id().as_str().to_uppercase(),
        })
        .collect();
    let subcommands: Vec<Value> = command.get_subcommands().map(described).collect();
    let mut described = json!({
        "name": command.get_name(),
        "aliases": command.get_visible_aliases().collect::<Vec<_>>(),
        "about": command.get_about().map(ToString::to_string),
        "arguments": arguments,
    });
    if !subcommands.is_empty() {
        described["commands"] = json!(subcommands);
    }
    described
}
