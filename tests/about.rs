//! What the program tells of itself: completions, manual pages, capabilities.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::collections::BTreeSet;
use std::fs;

use claimdir::Code;
use serde_json::Value;
use support::{World, said};

/// All commands, by what the program says.
fn commands(world: &World) -> Vec<String> {
    let value: Value = world.json("capabilities").expect(0);
    value["commands"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_shell_gets_a_script_that_knows_all_commands() {
    let world = World::new();
    let commands = commands(&world);
    assert!(commands.len() > 30, "{commands:?}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = world.say(&format!("completions {shell}")).out;
        let missing: Vec<_> = commands.iter().filter(|command| !script.contains(command.as_str())).collect();
        assert!(missing.is_empty(), "{shell}: {missing:?}");
        let value: Value = world.json(&format!("completions {shell}")).expect(0);
        assert_eq!(value["script"].as_str().unwrap().trim_end(), script.trim_end());
    }
    assert_eq!(world.say("completions tcsh").exit, 2);
    assert_eq!(world.say("completions").exit, 2);
    assert!(!world.dir().exists(), "no directory is made for that");
}

#[test]
fn bash_completes_commands_and_options() {
    let world = World::new();
    let asked = |words: &str, last: usize| {
        let script = format!(
            "source <($CLAIM completions bash); COMP_WORDS=({words}); COMP_CWORD={last}; _claim claim \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo ${{COMPREPLY[@]}}"
        );
        let mut bash = world.clean("bash");
        said(bash.args(["-c", &script]).env("CLAIM", env!("CARGO_BIN_EXE_claim"))).out
    };
    assert_eq!(asked("claim acq", 1).trim(), "acquire");
    assert!(asked("claim acquire --unt", 2).contains("--until-exit"));
    assert!(asked("claim mail ''", 2).contains("send"));
}

#[test]
fn there_is_a_manual_page_of_everything() {
    let world = World::new();
    let page = world.say("man").out;
    assert!(page.starts_with(".ie") && page.contains(".TH claim 1"), "{page}");
    assert!(page.contains("Exit codes"));
    for command in commands(&world) {
        assert!(page.contains(&command.replace('-', "\\-")), "{command}");
        assert!(world.say(&format!("man {command}")).out.contains(&format!(".TH claim-{command} 1")));
    }
    assert!(world.say("man mail send").out.contains("\\-\\-work\\-key"));
    for wrong in ["man nope", "man mail nope", "man acquire --out ."] {
        assert_eq!(world.say(wrong).exit, 2, "{wrong}");
    }
    let out = world.root.join("pages");
    let line = format!("man --out {}", out.display());
    let none = world.say(&line);
    assert!(none.exit == 6 && none.err.contains("pages"), "{none:?}");
    fs::create_dir(&out).unwrap();
    assert_eq!(world.say(&line).exit, 0);
    let page = fs::read_to_string(out.join("claim-mail-send.1")).unwrap();
    assert_eq!(page.trim_end(), world.say("man mail send").out.trim_end());
    assert!(!world.dir().exists());
}

#[test]
fn help_is_a_command_too() {
    let world = World::new();
    let mut asked =
        vec![String::new(), "mail send".into(), "pool run".into(), "take".into(), "guard hook".into()];
    asked.extend(commands(&world));
    for command in asked {
        let told = world.say(&format!("help {command}"));
        assert_eq!(told.exit, 0, "{command}: {told:?}");
        assert_eq!(told.out.trim_end(), world.say(&format!("{command} --help")).out.trim_end(), "{command}");
    }
    for (wrong, meant) in [("acquier", "acquire"), ("taek", "take"), ("mail sned", "send")] {
        for about in ["help", "man"] {
            let refused = world.say(&format!("{about} {wrong}"));
            assert!(
                refused.exit == 2 && refused.err.contains(&format!("did you mean `{meant}`?")),
                "{refused:?}"
            );
        }
    }
    assert!(!world.say("help zzz").err.contains("did you mean"));
    assert!(!world.dir().exists());
}

#[test]
fn help_says_what_now() {
    let world = World::new();
    for command in "acquire next run work check renew release complete retry add review result list why guard prime setup".split(' ') {
        let help = world.say(&format!("{command} --help")).out;
        assert!(help.contains("\nWhat now? "), "{command}: {help}");
        assert!(help.find("--help").unwrap() < help.find("\nEverywhere:").unwrap(), "{command}: {help}");
    }
    assert!(world.say("--help").out.contains("\nWhat now? "));
}

#[test]
fn capabilities_say_what_can_be_asked_for_and_answered() {
    let world = World::new();
    let value: Value = world.json("capabilities").expect(0);
    let codes = value["codes"].as_object().unwrap();
    for code in Code::ALL {
        assert_eq!(codes[code.name()], code.exit());
    }
    let acquire = value["commands"].as_array().unwrap().iter().find(|it| it["name"] == "acquire").unwrap();
    assert_eq!(acquire["aliases"][0], "take");
    let arguments = acquire["arguments"].as_array().unwrap();
    assert!(arguments.iter().any(|it| it == "ID") && arguments.iter().any(|it| it == "--force"), "{acquire}");
    assert!(value["everywhere"].as_array().unwrap().iter().any(|it| it == "--json"));
    assert_eq!(value["limits"]["min_lease_ms"], 50);
    let built_in = [("etcd", cfg!(feature = "etcd")), ("mcp", cfg!(feature = "mcp"))];
    for (feature, is_there) in built_in {
        let named = value["features"].as_array().unwrap().iter().any(|it| it == feature);
        assert_eq!(named, is_there, "{feature}");
    }
    assert_eq!(
        (&value["limits"]["title_bytes"], &value["limits"]["value_bytes"]),
        (&1024.into(), &(64 << 20).into())
    );
    for code in Code::ALL {
        assert!(value["exits"][code.exit().to_string()].is_string(), "{code:?}");
    }
    for exit in ["0", "75", "76", "125", "126", "127"] {
        assert!(value["exits"][exit].is_string(), "{exit}");
    }
    assert!(world.say("capabilities").out.starts_with("claim "));
    assert!(!world.dir().exists());
}

/// An agent's settings may name a server that this build has not: one line says how to get it.
#[cfg(not(feature = "mcp"))]
#[test]
fn a_build_without_the_server_says_how_to_get_it() {
    let world = World::new();
    let refused = world.refused("mcp", 2, "USAGE");
    assert_eq!(refused.message, "this build has no MCP server");
    assert_eq!(refused.hint.as_deref(), Some("build claim with --features mcp"));
    assert_eq!(
        world.say("mcp").err,
        "claim: this build has no MCP server\nhint: build claim with --features mcp\n"
    );
    assert!(!world.dir().exists(), "no directory is made for that");
}

/// What a command's help names, and nothing else, are its arguments.
#[test]
fn capabilities_name_arguments_as_the_help_does() {
    fn check(world: &World, above: &str, command: &Value) {
        let name = format!("{above}{}", command["name"].as_str().unwrap());
        let help = world.say(&format!("{name} --help")).out;
        let usage = help.lines().find(|line| line.starts_with("Usage: ")).unwrap();
        assert_eq!(command["usage"], usage.trim_start_matches("Usage: "), "{name}");
        for argument in command["arguments"].as_array().unwrap() {
            let argument = argument.as_str().unwrap();
            let names = help.split([' ', '\n', '<', '>', '[', ']', '=']);
            assert!(names.into_iter().any(|name| name == argument), "{name}: {argument}: {help}");
        }
        for below in command["commands"].as_array().into_iter().flatten() {
            check(world, &format!("{name} "), below);
        }
    }
    let world = World::new();
    let value: Value = world.json("capabilities").expect(0);
    for command in value["commands"].as_array().unwrap() {
        check(&world, "", command);
    }
}

/// All variables that the sources name, but for those of tests.
#[test]
fn capabilities_name_each_variable() {
    let world = World::new();
    let value: Value = world.json("capabilities").expect(0);
    let told: BTreeSet<String> = value["variables"].as_object().unwrap().keys().cloned().collect();
    let mut named = BTreeSet::new();
    for entry in walkdir::WalkDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")) {
        let entry = entry.unwrap();
        if entry.path().extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(entry.path()).unwrap();
            let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
            named.extend(
                words.filter(|it| it.starts_with("CLAIM_") || *it == "CLAIMS_DIR").map(str::to_owned),
            );
        }
    }
    named.retain(|name| {
        !name.starts_with("CLAIM_TEST_") && !["CLAIM_HELD", "CLAIM_", "CLAIM_REFS"].contains(&name.as_str())
    });
    named.extend(["CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "NO_COLOR"].map(str::to_owned));
    assert_eq!(told, named);
}
