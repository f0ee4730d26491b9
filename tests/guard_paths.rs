//! Which files a guard knows to be a repository's, however they are named and wherever it is asked from.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;
use support::repo::Repo;
use support::{Said, fed, said};

/// The answer to Claude Code's call of `Write`, made from `folder`; the hook itself runs elsewhere.
fn write(mut command: Command, folder: &std::path::Path, file: &str) -> Said {
    let call = json!({"hook_event_name": "PreToolUse", "cwd": folder, "tool_name": "Write", "tool_input": {"file_path": file}});
    command.current_dir("/");
    fed(command, call.to_string().as_bytes())
}

#[track_caller]
fn denied(said: &Said) {
    assert!(said.exit == 0 && said.out.contains(r#""permissionDecision":"deny""#), "{said:?}");
}

#[track_caller]
fn silent(said: &Said) {
    assert_eq!((said.exit, said.out.as_str(), said.err.as_str()), (0, "", ""), "{said:?}");
}

#[test]
fn a_write_through_a_link_is_one_to_where_it_leads() {
    let repo = Repo::new();
    repo.take("main", "alice", "a --path src/a.rs");
    symlink("src/a.rs", repo.at("side/file")).unwrap();
    symlink("src", repo.at("side/folder")).unwrap();
    symlink(repo.at("side"), repo.at("side/whole")).unwrap();
    for file in ["file", "folder/a.rs", "whole/src/a.rs", "whole/folder/a.rs"] {
        let hook = repo.claim("side", "bob", &["guard", "hook", "claude-code"]);
        denied(&write(hook, &repo.at("side"), file));
        assert_eq!(repo.say("side", "bob", &format!("guard path {file}")).exit, 4, "{file}");
    }
    for file in ["folder/b.rs", "folder/new/deep.rs", "whole/new"] {
        silent(&repo.say("side", "bob", &format!("guard path {file}")));
    }
    // To remove a link is not to write where it leads.
    let hook = repo.claim("side", "bob", &["guard", "hook", "claude-code"]);
    let call = json!({"cwd": repo.at("side"), "tool_name": "Bash", "tool_input": {"command": "rm file"}});
    silent(&fed(hook, call.to_string().as_bytes()));
}

#[test]
fn a_file_is_judged_by_its_own_repository_wherever_the_call_is_made() {
    let repo = Repo::new();
    repo.take("main", "alice", "a --path src/a.rs");
    repo.git("", &["init", "-q", "other"]);
    for from in ["", "other", "other/.git"] {
        let file = repo.at("side/src/a.rs");
        let file = file.to_str().unwrap();
        let hook = || repo.claim("", "bob", &["guard", "hook", "claude-code"]);
        denied(&write(hook(), &repo.at(from), file));
        assert_eq!(said(&mut repo.claim(from, "bob", &["guard", "path", file])).exit, 4);
        silent(&write(hook(), &repo.at(from), repo.at("side/src/b.rs").to_str().unwrap()));
        silent(&write(hook(), &repo.at(from), repo.at("other/src/a.rs").to_str().unwrap()));
    }
    // Two repositories with claims, one call: each file by its own.
    repo.take("other", "bob", "o --path src");
    let (a, o) = (repo.at("side/src/a.rs"), repo.at("other/src/a.rs"));
    let paths = [a.to_str().unwrap(), o.to_str().unwrap()];
    for (owner, exit) in [("alice", 4), ("bob", 4), ("carol", 4)] {
        let mut command = repo.claim("main", owner, &["guard", "path", paths[0], paths[1]]);
        assert_eq!(said(&mut command).exit, exit, "{owner}");
    }
    let mut command = repo.claim("main", "bob", &["guard", "path", paths[1]]);
    silent(&said(&mut command));
}

#[test]
fn other_worktrees_are_known_also_where_a_variable_names_the_directory() {
    let repo = Repo::new();
    repo.take("main", "alice", "a --path src/a.rs");
    let file = repo.at("side/src/a.rs");
    // As `claim acquire --export` has it.
    let mut command = repo.claim("main", "bob", &["guard", "path", file.to_str().unwrap()]);
    assert_eq!(said(command.env("CLAIMS_DIR", repo.at("main/.claims"))).exit, 4);
    // A directory apart from the repository.
    fs::create_dir(repo.at("apart")).unwrap();
    let apart = repo.at("apart/.claims");
    let with = |folder: &str, owner: &str, line: &[&str]| {
        said(repo.claim(folder, owner, line).env("CLAIMS_DIR", &apart))
    };
    assert_eq!(with("main", "alice", &["acquire", "b", "--path", "src/b.rs"]).exit, 0);
    let file = repo.at("side/src/b.rs");
    assert_eq!(with("main", "bob", &["guard", "path", file.to_str().unwrap()]).exit, 4);
}
