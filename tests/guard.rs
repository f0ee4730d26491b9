//! `claim guard`, by real processes, in repositories and worktrees of the real git.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::repo::Repo;
use support::{Said, World, fed, said};

/// The pre-commit guard in `folder`.
#[track_caller]
fn pre_commit(repo: &Repo, folder: &str, owner: &str) -> Said {
    repo.say(folder, owner, "guard git pre-commit")
}

/// The answer to a call of Claude Code.
fn call(repo: &Repo, folder: &str, owner: &str, tool: &str, input: Value) -> Said {
    hook(repo, repo.claim(folder, owner, &["guard", "hook", "claude-code"]), folder, tool, input)
}

fn hook(repo: &Repo, command: Command, folder: &str, tool: &str, input: Value) -> Said {
    let call = json!({
        "session_id": "s-1", "transcript_path": "/t", "cwd": repo.at(folder), "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input,
    });
    fed(command, call.to_string().as_bytes())
}

#[track_caller]
fn denied(said: &Said) -> String {
    assert_eq!(said.exit, 0, "{said:?}");
    let answer: Value = serde_json::from_str(said.line()).unwrap_or_else(|e| panic!("{e}: {said:?}"));
    let output = &answer["hookSpecificOutput"];
    assert_eq!(
        (&output["hookEventName"], &output["permissionDecision"]),
        (&json!("PreToolUse"), &json!("deny"))
    );
    output["permissionDecisionReason"].as_str().unwrap().to_owned()
}

#[track_caller]
fn silent(said: &Said) {
    assert_eq!((said.exit, said.out.as_str(), said.err.as_str()), (0, "", ""), "{said:?}");
}

#[test]
fn a_path_is_refused_while_another_holds_it_and_free_afterwards() {
    let repo = Repo::new();
    let token = repo.take("main", "alice", "a --path src");
    let refused = repo.say("side", "bob", "guard path src/a.rs");
    assert_eq!(refused.exit, 4, "{refused:?}");
    assert!(refused.out.contains("reserved by alice with a"), "{refused:?}");
    assert!(refused.err.contains("hint: work on other paths"), "{refused:?}");
    let object = repo.say("side/src", "bob", "guard path ../README b.rs --json");
    let object: Value = serde_json::from_str(object.line()).unwrap();
    assert_eq!((&object["code"], &object["path"]), (&json!("PATH_CLASH"), &json!("src/b.rs")));
    assert_eq!(object["holder"]["owner"], "alice");
    silent(&repo.say("side", "bob", "guard path docs/x /etc/passwd srcs"));
    silent(&repo.say("side", "alice", "guard path src/a.rs"));
    silent(&repo.say("side", "bob", &format!("guard path src/a.rs --token {token}")));
    repo.say("main", "alice", &format!("release a --token {token}"));
    silent(&repo.say("side", "bob", "guard path src/a.rs"));
    assert_eq!(repo.say("side", "bob", "guard path").exit, 2);
    for paths in [&[""][..], &["docs", ""], &["", "docs"]] {
        let empty = said(repo.claim("side", "bob", &["guard", "path"]).args(paths));
        assert_eq!((empty.exit, empty.out.as_str()), (2, ""), "{paths:?}: {empty:?}");
    }
}

#[test]
fn with_a_token_shown_only_the_claim_that_it_holds_is_ones_own() {
    let repo = Repo::new();
    repo.take("main", "alice", "a --path src/a.rs");
    let other = repo.take("main", "alice", "b --path src/b.rs");
    silent(&repo.say("main", "alice", &format!("guard path src/b.rs --token {other}")));
    assert_eq!(repo.say("main", "alice", &format!("guard path src/a.rs --token {other}")).exit, 4);
}

#[test]
fn a_file_in_another_worktree_is_the_same_path() {
    let repo = Repo::new();
    repo.take("main", "alice", "a --path src/a.rs");
    let file = repo.at("side/src/a.rs");
    let refused = said(&mut repo.claim("main", "bob", &["guard", "path", file.to_str().unwrap()]));
    assert_eq!(refused.exit, 4, "{refused:?}");
}

#[test]
fn where_no_claims_are_used_all_is_allowed_silently() {
    let world = World::new();
    for variable in ["", "bad"] {
        for arguments in
            [&["guard", "path", "x"][..], &["guard", "git", "pre-commit"], &["guard", "hook", "claude-code"]]
        {
            let mut command = world.claim();
            command.args(arguments).env_remove("CLAIMS_DIR").env("CLAIM_GUARD", variable);
            silent(&said(&mut command));
        }
    }
    let repo = Repo::new();
    silent(&pre_commit(&repo, "main", "bob"));
    silent(&call(&repo, "main", "bob", "Write", json!({"file_path": "src/a.rs"})));
    assert!(!repo.at("main/.claims").exists());
}

#[test]
fn an_agents_write_to_a_path_that_another_holds_is_denied() {
    let repo = Repo::new();
    repo.take("main", "alice", "a --path src");
    let file = repo.at("side/src/a.rs");
    for (tool, input) in [
        ("Write", json!({"file_path": file, "content": "x"})),
        ("Edit", json!({"file_path": file})),
        ("MultiEdit", json!({"file_path": "src/a.rs"})),
        ("NotebookEdit", json!({"notebook_path": file})),
        ("Bash", json!({"command": "echo hi >> src/new.rs"})),
        ("Bash", json!({"command": "true && rm -rf src"})),
        ("Bash", json!({"command": "cd src && sed -i s/a/b/ a.rs"})),
        (
            "Bash",
            json!({"command": format!("cd {} && bash -c 'echo > src/a.rs'", repo.at("main").display())}),
        ),
    ] {
        let reason = denied(&call(&repo, "side", "bob", tool, input));
        assert!(
            reason.contains("reserved by alice with a") && reason.contains("Next: work on other paths"),
            "{reason}"
        );
    }
    for (tool, input) in [
        ("Write", json!({"file_path": repo.at("side/docs/a.md")})),
        ("Write", json!({"file_path": "/somewhere/else"})),
        ("Read", json!({"file_path": file})),
        ("Bash", json!({"command": "cat src/a.rs > /dev/null"})),
    ] {
        silent(&call(&repo, "side", "bob", tool, input));
    }
    silent(&call(&repo, "side", "alice", "Write", json!({"file_path": file})));
}

#[test]
fn what_is_unclear_is_allowed_with_a_note() {
    let repo = Repo::new();
    repo.take("main", "alice", "a --path src");
    for input in [json!({"command": "rm $FILE"}), json!({"command": "cd nowhere && rm a.rs"}), json!({})] {
        let said = call(&repo, "side", "bob", "Bash", input);
        assert!(said.exit == 0 && said.out.is_empty() && said.err.contains("allowed"), "{said:?}");
    }
    for call in ["", "{", "[]", "{\"tool_name\": 7}"] {
        let said = fed(repo.claim("side", "bob", &["guard", "hook", "claude-code"]), call.as_bytes());
        assert!(said.exit == 0 && said.out.is_empty() && said.err.contains("allowed"), "{said:?}");
    }
}

#[test]
fn the_call_itself_says_whose_session_it_is() {
    let repo = Repo::new();
    let mut take = repo.claim("main", "", &["acquire", "a", "--path", "src"]);
    assert_eq!(said(take.env("CLAUDE_CODE_SESSION_ID", "s-1")).exit, 0);
    // The hook's own environment need not have the variable.
    silent(&call(&repo, "main", "", "Write", json!({"file_path": "src/a.rs"})));
    denied(&call(&repo, "main", "bob", "Write", json!({"file_path": "src/a.rs"})));
}

#[test]
fn a_hook_renews_the_own_claim_once_in_a_third_of_its_lease() {
    let repo = Repo::new();
    let token = repo.take("main", "alice", "a --path src --lease 1h");
    let hook = || {
        let mut command = repo.claim("main", "alice", &["guard", "hook", "claude-code"]);
        command.env("CLAIM_ID", "a").env("CLAIM_TOKEN", &token);
        silent(&hook(&repo, command, "main", "Write", json!({"file_path": "src/a.rs"})));
    };
    let record = repo.at("main/.claims/a.claim");
    let stored = || serde_json::from_slice::<Value>(&fs::read(&record).unwrap()).unwrap();
    let version = stored()["version"].as_u64().unwrap();
    hook();
    assert_eq!(stored()["version"], version, "renewed before a third of the lease");
    let mut earlier = stored();
    let ends = earlier["claim"]["clock"]["ends_mono_ms"].as_i64().unwrap();
    earlier["claim"]["clock"]["ends_mono_ms"] = (ends - 25 * 60 * 1000).into();
    fs::write(&record, serde_json::to_vec(&earlier).unwrap()).unwrap();
    hook();
    assert_eq!(stored()["version"], version + 1);
    hook();
    assert_eq!(stored()["version"], version + 1, "renewed twice");
}

#[test]
fn a_commit_that_touches_others_paths_is_refused() {
    let repo = Repo::new();
    repo.take("main", "alice", "a --path src/a.rs");
    repo.git("side", &["mv", "src/a.rs", "moved.rs"]);
    let refused = pre_commit(&repo, "side", "bob");
    assert_eq!(refused.exit, 1, "the old name of a rename: {refused:?}");
    assert!(refused.err.contains("src/a.rs") && refused.err.contains("hint:"), "{refused:?}");
    silent(&pre_commit(&repo, "side", "alice"));
    repo.git("side", &["reset", "-q", "--hard"]);
    silent(&pre_commit(&repo, "side", "bob"));
    repo.take("main", "alice", "new --path src/new.rs");
    repo.git("side", &["mv", "src/b.rs", "src/new.rs"]);
    assert_eq!(pre_commit(&repo, "side", "bob").exit, 1, "the new name of a rename");
}

#[test]
fn no_byte_of_a_name_is_special() {
    let repo = Repo::new();
    let names = ["new\nline", "quot\"ed ä", "ta\tb", "*", "[x]"];
    for (n, name) in names.iter().enumerate() {
        let node = format!("n{n}");
        let path = format!("odd{n}");
        repo.write(&format!("side/{path}/{name}"), "x");
        let taken = said(&mut repo.claim("main", "alice", &["acquire", &node, "--path", &path]));
        assert_eq!(taken.exit, 0, "{taken:?}");
        repo.git("side", &["reset", "-q"]);
        repo.git("side", &["add", "--", &path]);
        let refused = repo.say("side", "bob", "guard git pre-commit --json");
        assert_eq!(refused.exit, 1, "{name:?}: {refused:?}");
        let object: Value = serde_json::from_str(refused.line()).unwrap();
        assert_eq!(object["clashes"][0]["path"], format!("{path}/{name}"));
    }
    repo.git("side", &["reset", "-q"]);
    use std::os::unix::ffi::OsStrExt;
    fs::write(repo.at("side/odd0").join(std::ffi::OsStr::from_bytes(b"\xff")), "x").unwrap();
    repo.git("side", &["add", "odd0"]);
    assert_eq!(
        pre_commit(&repo, "side", "bob").exit,
        1,
        "a name that is no UTF-8, in a folder that is reserved"
    );
}

#[test]
fn a_merge_is_not_blamed_for_what_its_parents_have() {
    let repo = Repo::new();
    repo.write("main/src/a.rs", "alice's\n");
    repo.write("main/src/b.rs", "alice's\n");
    repo.git("main", &["commit", "-qam", "alice's"]);
    repo.write("side/src/b.rs", "bob's\n");
    repo.git("side", &["commit", "-qam", "bob's"]);
    let merged = said(&mut repo.git_command("side", &["merge", "-q", "main"]));
    assert_ne!(merged.exit, 0, "no conflict: {merged:?}");
    repo.write("side/src/b.rs", "both\n");
    repo.git("side", &["add", "."]);
    repo.take("main", "alice", "a --path src/a.rs");
    silent(&pre_commit(&repo, "side", "bob"));
    repo.take("main", "alice", "b --path src/b.rs");
    assert_eq!(pre_commit(&repo, "side", "bob").exit, 1);
}

#[test]
fn the_work_of_a_lost_claim_is_refused() {
    let repo = Repo::new();
    let token = repo.take("side", "bob", "b --path src/b.rs");
    repo.write("side/src/b.rs", "bob's");
    repo.git("side", &["add", "."]);
    let commit = || {
        let mut command = repo.claim("side", "bob", &["guard", "git", "pre-commit"]);
        said(command.env("CLAIM_ID", "b").env("CLAIM_TOKEN", &token))
    };
    silent(&commit());
    repo.say("main", "alice", "acquire b --force away --path src/b.rs");
    let refused = commit();
    assert_eq!(refused.exit, 1, "{refused:?}");
    assert!(refused.err.contains("the claim is not valid: alice holds it"), "{refused:?}");
}

#[test]
fn a_push_is_judged_by_what_the_remote_does_not_have() {
    let repo = Repo::new();
    repo.git("", &["init", "-q", "--bare", "remote"]);
    repo.git("main", &["remote", "add", "origin", "../remote"]);
    repo.git("main", &["push", "-q", "origin", "main"]);
    repo.take("main", "alice", "a --path src/a.rs");
    let head = |rev: &str| repo.git("side", &["rev-parse", rev]).line().to_owned();
    let push = |local: &str, theirs: &str| {
        let command = repo.claim("side", "bob", &["guard", "git", "pre-push", "origin", "../remote"]);
        fed(command, format!("refs/heads/side {local} refs/heads/side {theirs}\n").as_bytes())
    };
    let zero = "0".repeat(40);
    repo.write("side/src/b.rs", "bob's");
    repo.git("side", &["commit", "-qam", "bob's"]);
    silent(&push(&head("HEAD"), &zero));
    let before = head("HEAD");
    repo.git("side", &["mv", "src/a.rs", "elsewhere"]);
    repo.git("side", &["commit", "-qam", "moved"]);
    repo.git("side", &["mv", "elsewhere", "src/a.rs"]);
    repo.git("side", &["commit", "-qam", "moved back"]);
    for theirs in [&zero, &before] {
        let refused = push(&head("HEAD"), theirs);
        assert_eq!(refused.exit, 1, "{refused:?}");
        assert!(refused.err.contains("src/a.rs"), "{refused:?}");
    }
    silent(&push(&zero, &before));
    silent(&push(&head("HEAD"), &head("HEAD")));
    // There is nothing to push.
    let command = || repo.claim("side", "bob", &["guard", "git", "pre-push", "../remote", "../remote"]);
    silent(&fed(command(), b"\n"));
    // A remote without a name: what no other one has is new to it, too.
    let line = format!("x {} y {zero}\n", head("HEAD"));
    assert_eq!(fed(command(), line.as_bytes()).exit, 1);
    silent(&fed(command(), format!("x {} y {zero}\n", head("side~3")).as_bytes()));
    // Nothing is known of any remote: what it has may be all of this.
    repo.git("main", &["remote", "remove", "origin"]);
    let said = fed(command(), line.as_bytes());
    assert!(said.exit == 0 && said.err.contains("nothing is known"), "{said:?}");
}

#[test]
fn what_the_configuration_hides_is_touched_all_the_same() {
    let repo = Repo::new();
    for (name, value) in [
        ("diff.ignoreSubmodules", "all"),
        ("diff.relative", "true"),
        ("diff.renames", "copies"),
        ("core.quotePath", "true"),
        ("color.ui", "always"),
        ("diff.external", "false"),
    ] {
        repo.git("main", &["config", name, value]);
    }
    let head = repo.git("main", &["rev-parse", "HEAD"]).line().to_owned();
    repo.git("side", &["update-index", "--add", "--cacheinfo", &format!("160000,{head},sub")]);
    repo.git("side", &["commit", "-q", "--no-verify", "-m", "sub"]);
    repo.take("main", "alice", "sub --path sub");
    repo.take("main", "alice", "a --path src/a.rs");
    repo.git("side", &["update-index", "--cacheinfo", &format!("160000,{},sub", "1".repeat(40))]);
    let refused = pre_commit(&repo, "side", "bob");
    assert!(refused.exit == 1 && refused.err.contains("reserved by alice with sub"), "{refused:?}");
    repo.git("side", &["reset", "-q"]);
    repo.git("side", &["mv", "src/a.rs", "src/c.rs"]);
    let refused = pre_commit(&repo, "side/src", "bob");
    assert!(refused.exit == 1 && refused.err.contains("reserved by alice with a"), "{refused:?}");
}

#[test]
fn it_can_be_told_to_warn_only_or_to_be_off() {
    let repo = Repo::new();
    repo.take("main", "alice", "a --path src");
    repo.write("side/src/a.rs", "bob's");
    repo.git("side", &["add", "."]);
    let with = |value: &str| {
        said(repo.claim("side", "bob", &["guard", "git", "pre-commit"]).env("CLAIM_GUARD", value))
    };
    let warned = with("warn");
    assert!(warned.exit == 0 && warned.err.contains("would be refused: the path src/a.rs"), "{warned:?}");
    let bad = with("wran");
    assert!(bad.exit == 0 && bad.err.contains("would be refused") && bad.err.contains("\"wran\""), "{bad:?}");
    silent(&with("off"));
    assert_eq!(with("").exit, 1);
    let mut command = repo.claim("side", "bob", &["guard", "hook", "claude-code"]);
    command.env("CLAIM_GUARD", "warn");
    let warned = hook(&repo, command, "side", "Write", json!({"file_path": "src/a.rs"}));
    assert!(
        warned.exit == 0 && warned.out.is_empty() && warned.err.contains("would be refused"),
        "{warned:?}"
    );
}

/// Ends in good time, allows, and says so. The bound is generous: what it must never do is wait.
#[track_caller]
fn allowed_in_time(command: Command) {
    let mut command = command;
    command.env_remove("CLAIM_PATIENCE");
    let (mut reader, writer) = std::io::pipe().unwrap();
    let start = Instant::now();
    let mut child = command
        .stdin(reader.try_clone().unwrap())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = start + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "it hangs");
        std::thread::sleep(Duration::from_millis(5));
    };
    drop(writer);
    let _ = std::io::Read::read(&mut reader, &mut [0]);
    let output = child.wait_with_output().unwrap();
    assert!(status.success());
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.stdout.is_empty() && err.contains("allowed"), "{err}");
}

#[test]
fn it_never_waits() {
    let repo = Repo::new();
    repo.take("main", "alice", "a --path src");
    // A standard input that does not end.
    allowed_in_time(repo.claim("side", "bob", &["guard", "hook", "claude-code"]));
    allowed_in_time(repo.claim("side", "bob", &["guard", "git", "pre-push", "origin"]));
    // A git that does not answer.
    repo.program("bin/git", "#!/bin/sh\nexec sleep 3600\n");
    let mut command = repo.claim("side", "bob", &["guard", "git", "pre-commit"]);
    command.env("PATH", format!("{}:{}", repo.at("bin").display(), std::env::var("PATH").unwrap()));
    allowed_in_time(command);
    // A record that nobody writes to.
    let record = repo.at("main/.claims/a.claim");
    fs::remove_file(&record).unwrap();
    assert!(Command::new("mkfifo").arg(&record).status().unwrap().success());
    allowed_in_time(repo.claim("side", "bob", &["guard", "path", "src/a.rs"]));
    // A repository that can't be read to its end.
    let config = repo.at("main/.git/config");
    fs::remove_file(&config).unwrap();
    assert!(Command::new("mkfifo").arg(&config).status().unwrap().success());
    allowed_in_time(repo.claim("side", "bob", &["guard", "path", "src/a.rs"]));
}
