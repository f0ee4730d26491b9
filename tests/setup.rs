//! `claim setup`: what it writes works with the real git and shell, and what is not ours stays as it is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::repo::Repo;
use support::{Said, World, said};

const FILES: [(&str, &str); 4] = [
    ("claude-code", ".claude/settings.json"),
    ("codex", "AGENTS.md"),
    ("cursor", ".cursor/rules/claim.mdc"),
    ("github-actions", ".github/workflows/claim.yml"),
];

#[test]
fn twice_is_as_once_and_removed_is_as_before() {
    let repo = Repo::new();
    for (target, file) in FILES {
        let (path, setup) = (format!("main/{file}"), format!("setup {target}"));
        assert_eq!(repo.say("main", "", &format!("{setup} --check")).exit, 1);
        let printed = repo.yes("main", &format!("{setup} --print")).out;
        assert_eq!(repo.read(&path), None, "{target}: --check or --print wrote");
        assert!(repo.yes("main/src", &setup).line().starts_with("WROTE "));
        let written = repo.read(&path).unwrap();
        assert_eq!(written, printed, "{target}");
        assert!(repo.yes("main", &setup).line().starts_with("UNCHANGED "));
        assert_eq!(repo.read(&path).unwrap(), written);
        repo.yes("main", &format!("{setup} --check"));
        fs::write(
            repo.at(&path),
            written.replacen("claim renew", "claim re-new", 1).replacen("20", "21", 1).replacen(
                "NotebookEdit",
                "Other",
                1,
            ),
        )
        .unwrap();
        let drifted = repo.say("main", "", &format!("{setup} --check"));
        assert!(drifted.exit == 1 && drifted.line().starts_with("DRIFT "), "{target}: {drifted:?}");
        repo.yes("main", &setup);
        assert_eq!(repo.read(&path).unwrap(), written, "{target}");
        assert!(repo.yes("main", &format!("{setup} --remove")).line().starts_with("REMOVED "));
        assert_eq!(repo.read(&path), None, "{target}");
        assert!(repo.yes("main", &format!("{setup} --remove")).line().starts_with("UNCHANGED "));
    }
}

#[test]
fn what_is_not_ours_keeps_its_bytes_and_its_permissions() {
    let repo = Repo::new();
    let settings = "{\n\t\"z\": 1.50,\n\t\"hooks\": {\"Stop\": [ ]},\n\t\"a\": \"\\u00e9\"\n}";
    let texts = [settings, "# Agents\r\n\r\nBe kind.", "---\nx: y\n---\nrule\n"];
    for ((target, file), text) in FILES.into_iter().zip(texts) {
        let path = format!("main/{file}");
        repo.program(&path, text);
        repo.yes("main", &format!("setup {target}"));
        let with = repo.read(&path).unwrap();
        assert!(with.contains("claim prime") && with.len() > text.len(), "{target}: {with}");
        assert_eq!(fs::metadata(repo.at(&path)).unwrap().permissions().mode() & 0o777, 0o755);
        repo.yes("main", &format!("setup {target} --remove"));
        assert_eq!(repo.read(&path).unwrap(), text, "{target}");
    }
    let hooks: Value = {
        repo.yes("main", "setup claude-code");
        serde_json::from_str(&repo.read("main/.claude/settings.json").unwrap()).unwrap()
    };
    let command = &hooks["hooks"]["PreToolUse"][0]["hooks"][0]["command"];
    assert_eq!(command, "claim guard hook claude-code");
}

#[test]
fn what_is_not_understood_is_refused_in_one_line_and_left() {
    let repo = Repo::new();
    let refused = |target: &str| {
        let said = repo.say("main", "", &format!("setup {target}"));
        assert_eq!(
            (said.exit, said.out.as_str(), said.err.lines().count()),
            (2, "", 1),
            "{target}: {said:?}"
        );
        said.err
    };
    repo.write("main/.claude/settings.json", "{ // a comment\n}");
    assert!(refused("claude-code").contains("it is not JSON"));
    assert_eq!(repo.read("main/.claude/settings.json").unwrap(), "{ // a comment\n}");
    fs::write(repo.at("main/AGENTS.md"), b"\xff").unwrap();
    assert!(refused("codex").contains("not valid UTF-8"));
    fs::remove_file(repo.at("main/AGENTS.md")).unwrap();
    repo.write("main/CLAUDE.md", "x");
    symlink("CLAUDE.md", repo.at("main/AGENTS.md")).unwrap();
    assert!(refused("codex").contains("it is a symbolic link"));
    assert_eq!(repo.read("main/CLAUDE.md").unwrap(), "x");
    fs::remove_file(repo.at("main/AGENTS.md")).unwrap();
    assert!(Command::new("mkfifo").arg(repo.at("main/AGENTS.md")).status().unwrap().success());
    assert!(refused("codex").contains("it is not a file"));
    fs::create_dir(repo.at("elsewhere")).unwrap();
    symlink(repo.at("elsewhere"), repo.at("main/.cursor")).unwrap();
    assert!(refused("cursor").contains("is a symbolic link"));
    repo.write("main/.github/workflows/claim.yml", "on: push\n");
    assert!(refused("github-actions").contains("was not made by claim"));
    repo.program("main/.git/hooks/pre-push", "#!/usr/bin/python3\n");
    repo.write("main/.git/hooks/pre-push.before-claim", "somebody's");
    assert!(refused("git").contains("there is "));
    assert_eq!(repo.read("main/.git/hooks/pre-commit"), None, "half of it was written");
    repo.write("main/.git/hooks/pre-push", "#!/bin/sh\n");
    fs::set_permissions(repo.at("main/.git/hooks/pre-push"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused("git").contains("not executable"));
}

#[test]
fn a_commit_in_any_worktree_is_guarded() {
    let repo = Repo::new();
    repo.yes("side", "setup git");
    assert!(repo.read("main/.git/hooks/pre-commit").unwrap().contains("claim guard git pre-commit"));
    repo.yes("main", "setup git --check");
    repo.yes("main", "acquire a --owner alice --path src/a.rs");
    repo.git("side", &["mv", "src/a.rs", "moved"]);
    let refused = repo.no_git("side", &["commit", "-q", "-m", "moved"]);
    assert!(refused.err.contains("reserved by alice with a"), "{refused:?}");
    repo.git("side", &["reset", "-q", "--hard"]);
    repo.write("side/src/b.rs", "bob's\n");
    repo.git("side", &["commit", "-qam", "b"]);
    repo.write("main/src/a.rs", "bob's\n");
    repo.no_git("main", &["commit", "-qam", "all of it"]);
    repo.git("main", &["checkout", "-q", "src/a.rs"]);
    for (n, name) in ["new\nline", "\u{e4}\"\\octal"].into_iter().enumerate() {
        repo.yes("main", &format!("acquire odd{n} --owner alice --path odd{n}"));
        repo.write(&format!("side/odd{n}/{name}"), "x");
        repo.git("side", &["add", "."]);
        repo.no_git("side", &["commit", "-q", "-m", "odd"]);
        repo.git("side", &["reset", "-q", "--hard"]);
    }
    // A merge brings what others have committed, and is nobody's fault.
    repo.git("side", &["checkout", "-q", "-b", "hers", "HEAD~1"]);
    repo.write("side/src/a.rs", "alice's\n");
    repo.git("side", &["commit", "-q", "--no-verify", "-am", "alice's"]);
    repo.git("side", &["checkout", "-q", "side"]);
    repo.git("side", &["merge", "-q", "--no-edit", "hers"]);
    repo.yes("side", "setup git --remove");
    assert_eq!(repo.read("main/.git/hooks/pre-commit"), None);
}

#[test]
fn a_hook_that_is_there_runs_too_and_its_failure_counts() {
    let repo = Repo::new();
    let commit = "#!/usr/bin/env bash\nset -eu\necho commit >>ran\n[ ! -e fail ]\n";
    let push = "#!/bin/sh\nwhile read -r _ sha _ _; do echo \"push $sha\" >>ran; done\n";
    repo.program("main/.git/hooks/pre-commit", commit);
    repo.program("main/.git/hooks/pre-push", push);
    repo.git("", &["init", "-q", "--bare", "remote"]);
    repo.git("main", &["remote", "add", "origin", "../remote"]);
    repo.git("main", &["push", "-q", "origin", "main"]);
    fs::remove_file(repo.at("main/ran")).unwrap();
    repo.yes("main", "setup git");
    repo.yes("main", "acquire a --owner alice --path src/a.rs");
    repo.write("main/src/b.rs", "new\n");
    repo.git("main", &["commit", "-qam", "b"]);
    let head = repo.git("main", &["rev-parse", "HEAD"]).line().to_owned();
    repo.git("main", &["push", "-q", "origin", "main"]);
    assert_eq!(repo.read("main/ran").unwrap(), format!("commit\npush {head}\n"));
    repo.write("main/fail", "");
    repo.write("main/src/b.rs", "newer\n");
    repo.no_git("main", &["commit", "-qam", "b"]);
    fs::remove_file(repo.at("main/fail")).unwrap();
    repo.write("main/src/a.rs", "bob's\n");
    repo.no_git("main", &["commit", "-qam", "a"]);
    repo.git("main", &["commit", "-q", "--no-verify", "-am", "a"]);
    let refused = repo.no_git("main", &["push", "-q", "origin", "main"]);
    assert!(refused.err.contains("reserved by alice with a"), "{refused:?}");
    repo.git("main", &["push", "-q", "--no-verify", "origin", "main:main", "main:topic"]);
    repo.git("main", &["push", "-q", "origin", ":topic"]);
    repo.yes("main", "setup git --remove");
    assert_eq!(repo.read("main/.git/hooks/pre-commit").unwrap(), commit);
    assert_eq!(repo.read("main/.git/hooks/pre-push").unwrap(), push);
}

#[test]
fn a_hook_that_is_no_shell_script_is_put_aside_and_runs_after_ours() {
    let repo = Repo::new();
    let hook = "#!/usr/bin/env -S awk -f\nBEGIN { print \"ran\" >>\"ran\"; while ((getline line <\"fail\") > 0) exit 1 }\n";
    repo.program("main/.git/hooks/pre-commit", hook);
    repo.yes("main", "setup git");
    let ours = repo.read("main/.git/hooks/pre-commit").unwrap();
    assert_eq!(repo.read("main/.git/hooks/pre-commit.before-claim").unwrap(), hook);
    repo.yes("main", "setup git --check");
    repo.yes("main", "setup git");
    assert_eq!(repo.read("main/.git/hooks/pre-commit").unwrap(), ours);
    repo.yes("main", "acquire a --owner alice --path src/a.rs");
    repo.write("main/src/b.rs", "new\n");
    repo.git("main", &["commit", "-qam", "b"]);
    assert_eq!(repo.read("main/ran").unwrap(), "ran\n");
    repo.write("main/src/a.rs", "bob's\n");
    repo.no_git("main", &["commit", "-qam", "a"]);
    repo.git("main", &["checkout", "-q", "."]);
    repo.write("main/fail", "yes\n");
    repo.write("main/src/b.rs", "newer\n");
    repo.no_git("main", &["commit", "-qam", "b"]);
    repo.yes("main", "setup git --remove");
    assert_eq!(repo.read("main/.git/hooks/pre-commit").unwrap(), hook);
    assert_eq!(repo.read("main/.git/hooks/pre-commit.before-claim"), None);
    assert_eq!(
        fs::metadata(repo.at("main/.git/hooks/pre-commit")).unwrap().permissions().mode() & 0o777,
        0o755
    );
}

#[test]
fn a_hook_that_is_a_link_or_no_text_is_put_aside_and_runs_too() {
    let repo = Repo::new();
    repo.program("main/tools/hook", "#!/bin/sh\necho ran >>ran\n[ ! -e fail ]\n");
    let (hook, aside) = ("main/.git/hooks/pre-commit", "main/.git/hooks/pre-commit.before-claim");
    let by_link = || symlink("../../tools/hook", repo.at(hook)).unwrap();
    let binary = || assert!(fs::copy("/bin/true", repo.at(hook)).unwrap() > 0);
    for (n, make) in [&by_link as &dyn Fn(), &binary].into_iter().enumerate() {
        make();
        let (was_link, bytes) = (repo.at(hook).is_symlink(), fs::read(repo.at(hook)).unwrap());
        repo.yes("main", "setup git");
        assert!(!repo.at(hook).is_symlink() && repo.read(hook).unwrap().contains("claim guard"));
        repo.yes("main", "setup git --check");
        repo.yes("main", "setup git");
        repo.yes("main", &format!("acquire n{n} --owner alice --path src/a.rs --force again"));
        repo.write("main/src/b.rs", &format!("new {n}\n"));
        repo.git("main", &["commit", "-qam", "b"]);
        repo.write("main/src/a.rs", &format!("bob's {n}\n"));
        repo.no_git("main", &["commit", "-qam", "a"]);
        repo.git("main", &["checkout", "-q", "."]);
        repo.yes("main", "cancel n0 --owner alice");
        repo.yes("main", "setup git --remove");
        assert_eq!((repo.at(hook).is_symlink(), fs::read(repo.at(hook)).unwrap()), (was_link, bytes));
        assert!(fs::symlink_metadata(repo.at(aside)).is_err());
        fs::remove_file(repo.at(hook)).unwrap();
    }
    assert_eq!(repo.read("main/ran").unwrap(), "ran\n", "the hook of the refused commit is not reached");
    // What was put aside is gone: a hook that is not there stops no commit.
    by_link();
    repo.yes("main", "setup git");
    fs::remove_file(repo.at(aside)).unwrap();
    assert_eq!(repo.say("main", "", "setup git --check").exit, 1);
    repo.yes("main", "setup git");
    repo.write("main/src/b.rs", "newest\n");
    repo.git("main", &["commit", "-qam", "b"]);
    symlink("nowhere", repo.at("main/.git/hooks/pre-push.x")).unwrap();
    fs::rename(repo.at("main/.git/hooks/pre-push.x"), repo.at("main/.git/hooks/pre-push")).unwrap();
    assert_eq!(repo.say("main", "", "setup git").exit, 2, "a link that leads nowhere");
}

#[test]
fn what_may_not_be_written_is_left_and_what_is_left_empty_goes() {
    let repo = Repo::new();
    let settings = "main/.claude/settings.json";
    repo.write(settings, "{}\n");
    fs::set_permissions(repo.at(settings), fs::Permissions::from_mode(0o444)).unwrap();
    let refused = repo.say("main", "", "setup claude-code");
    assert!(refused.exit == 2 && refused.err.contains("it is read-only"), "{refused:?}");
    assert_eq!(repo.read(settings).unwrap(), "{}\n");
    let drift = repo.say("main", "", "setup claude-code --check");
    assert!(drift.exit == 1 && drift.err.contains("`claim setup claude-code` writes it"), "{drift:?}");
    repo.write("main/.github/other", "kept");
    for target in ["cursor", "github-actions"] {
        repo.yes("main", &format!("setup {target}"));
        repo.yes("main", &format!("setup {target} --remove"));
    }
    assert!(!repo.at("main/.cursor").exists() && !repo.at("main/.github/workflows").exists());
    assert!(repo.at("main/.github/other").exists());
    repo.yes("main", "setup git");
    repo.yes("main", "setup git --remove");
    assert!(repo.at("main/.git/hooks").exists());
}

/// As husky has them: the hooks that git finds run those that people write, by `sh -e`.
#[test]
fn huskys_own_folder_is_left_to_husky() {
    let repo = Repo::new();
    for hook in ["pre-commit", "pre-push"] {
        repo.program(&format!("main/.husky/_/{hook}"), "#!/usr/bin/env sh\n. \"$(dirname \"$0\")/h\"");
    }
    repo.write("main/.husky/_/h", "s=$(dirname \"$(dirname \"$0\")\")/$(basename \"$0\")\n[ ! -f \"$s\" ] && exit 0\nsh -e \"$s\" \"$@\"\n");
    let theirs = "echo ran >>ran\n";
    repo.write("main/.husky/pre-commit", theirs);
    repo.git("main", &["config", "core.hooksPath", ".husky/_"]);
    let generated = repo.read("main/.husky/_/pre-commit");
    let said = repo.yes("main", "setup git");
    assert!(said.out.contains(".husky/pre-commit") && said.err.contains("commit them"), "{said:?}");
    assert_eq!(repo.read("main/.husky/_/pre-commit"), generated);
    repo.yes("main", "setup git --check");
    repo.yes("main", "acquire a --owner alice --path src/a.rs");
    repo.write("main/src/b.rs", "bob's\n");
    repo.git("main", &["commit", "-qam", "b"]);
    assert_eq!(repo.read("main/ran").unwrap(), "ran\n");
    repo.write("main/src/a.rs", "bob's\n");
    repo.no_git("main", &["commit", "-qam", "a"]);
    repo.yes("main", "setup git --remove");
    assert_eq!(repo.read("main/.husky/pre-commit").unwrap(), theirs);
    assert_eq!(repo.read("main/.husky/pre-push"), None);
}

#[test]
fn whose_hooks_they_are_is_said_where_they_are_not_the_repositorys() {
    let repo = Repo::new();
    assert_eq!(repo.yes("main", "setup git").err, "");
    for (path, words) in [
        ("hooks", "each worktree has hooks of its own"),
        (repo.at("elsewhere").to_str().unwrap(), "other repositories may use them, too"),
    ] {
        repo.git("main", &["config", "core.hooksPath", path]);
        let said = repo.yes("main", "setup git");
        assert!(said.err.contains(words), "{path}: {said:?}");
        assert!(!repo.yes("main", "setup codex").err.contains(words));
    }
    repo.git("main", &["config", "core.hooksPath", repo.at("main/.git/hooks").to_str().unwrap()]);
    assert_eq!(repo.yes("main", "setup git").err, "");
}

#[test]
fn hooks_are_where_the_configuration_says() {
    let repo = Repo::new();
    repo.git("main", &["config", "core.hooksPath", ".husky"]);
    repo.yes("main/src", "setup git");
    assert!(repo.read("main/.husky/pre-commit").is_some());
    assert_eq!(repo.read("main/.git/hooks/pre-commit"), None);
    repo.yes("main", "acquire a --owner alice --path src");
    repo.write("main/src/a.rs", "bob's\n");
    repo.no_git("main", &["commit", "-qam", "a"]);
}

#[test]
fn without_the_program_a_hook_stops_nothing() {
    let repo = Repo::new();
    repo.yes("main", "setup git");
    repo.write("main/src/a.rs", "new\n");
    let mut command = repo.world.clean("git");
    command
        .args(["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", "a"])
        .current_dir(repo.at("main"));
    assert_eq!(said(&mut command).exit, 0);
}

#[test]
fn killed_in_the_midst_it_has_written_all_or_nothing() {
    if !Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success()) {
        return println!("skipped: needs strace");
    }
    let repo = Repo::new();
    let old = "#!/usr/bin/env -S awk -f\nBEGIN { exit 0 }\n";
    let hook = "main/.git/hooks/pre-commit";
    let mut killed = 0;
    for call in ["write", "fchmod", "fsync", "link,linkat", "rename,renameat,renameat2"] {
        for count in 1..=4 {
            repo.program(hook, old);
            let mut command = repo.world.clean("strace");
            command.args([
                "-qqq",
                "-o",
                "/dev/null",
                "-e",
                &format!("inject={call}:signal=KILL:when={count}"),
                "--",
            ]);
            command.arg(env!("CARGO_BIN_EXE_claim")).args(["setup", "git"]).current_dir(repo.at("main"));
            killed += usize::from(said(&mut command).exit != 0);
            let text = repo.read(hook).unwrap();
            let is_chained = text.ends_with("exec \"$0.before-claim\" \"$@\"\n# <<< claim <<<\n");
            assert!(text == old || is_chained, "{call} {count}: {text:?}");
            repo.yes("main", "setup git");
            repo.yes("main", "setup git --check");
            repo.yes("main", "setup git --remove");
            assert_eq!(repo.read(hook).unwrap(), old, "{call} {count}");
            assert_eq!(repo.read("main/.git/hooks/pre-commit.before-claim"), None);
            assert_eq!(repo.read("main/.git/hooks/pre-push"), None);
        }
    }
    assert!(killed > 5, "{killed}");
}

/// The workflow's last step, run here; its exit code.
fn step(world: &World, workflow: &str, claim: &str) -> Said {
    let (_, script) = workflow.rsplit_once("run: |\n").unwrap();
    let lines = script.lines().take_while(|line| line.is_empty() || line.starts_with("          "));
    let script: String = lines.map(|line| format!("{}\n", line.trim())).collect();
    let mut command = world.clean("bash");
    let path = format!("{claim}:{}", std::env::var("PATH").unwrap());
    said(command.args(["-e", "-o", "pipefail", "-c", &script]).env("PATH", path))
}

#[test]
fn the_workflow_sees_whether_exactly_one_wins() {
    let repo = Repo::new();
    let workflow = repo.yes("main", "setup github-actions --print").out;
    let bin = Path::new(env!("CARGO_BIN_EXE_claim")).parent().unwrap();
    let won = step(&repo.world, &workflow, bin.to_str().unwrap());
    assert!(won.exit == 0 && won.out.contains("won: 1, lost: 19"), "{won:?}");
    for exit in [0, 1] {
        repo.program("fake/claim", &format!("#!/bin/sh\nexit {exit}\n"));
        let said = step(&repo.world, &workflow, repo.at("fake").to_str().unwrap());
        assert_ne!(said.exit, 0, "{said:?}");
    }
}
