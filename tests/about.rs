//! What the program tells of itself: completions, manual pages, capabilities.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

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
