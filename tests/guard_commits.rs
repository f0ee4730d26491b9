//! Each way to commit and to push, with the hooks that `claim setup git` installs and the real git.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use support::Said;
use support::repo::Repo;

/// A repository where alice has `src/a.rs`, and bob commits in `side`.
fn guarded() -> Repo {
    let repo = Repo::new();
    repo.yes("main", "setup git");
    repo.take("main", "alice", "a --path src/a.rs");
    repo
}

#[track_caller]
fn refused(said: &Said) {
    assert!(said.err.contains("src/a.rs is reserved by alice with a"), "{said:?}");
}

#[test]
fn whatever_is_done_to_the_file_it_is_touched() {
    let repo = guarded();
    let file = repo.at("side/src/a.rs");
    let ways: [&dyn Fn(); 5] = [
        &|| fs::write(&file, "bob's").unwrap(),
        &|| fs::remove_file(&file).unwrap(),
        &|| fs::rename(&file, repo.at("side/moved")).unwrap(),
        &|| fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap(),
        &|| {
            fs::remove_file(&file).unwrap();
            symlink("b.rs", &file).unwrap();
        },
    ];
    for way in ways {
        way();
        refused(&repo.no_git("side", &["commit", "-qam", "x"]));
        repo.git("side", &["add", "-A"]);
        refused(&repo.no_git("side/src", &["commit", "-qm", "x"]));
        repo.git("side", &["reset", "-q", "--hard"]);
        repo.git("side", &["clean", "-qfd"]);
    }
}

#[test]
fn what_counts_is_what_is_committed() {
    let repo = guarded();
    // Of what is staged only a part goes into the commit.
    repo.write("side/src/a.rs", "bob's\n");
    repo.git("side", &["add", "."]);
    repo.write("side/src/b.rs", "bob's\n");
    repo.git("side", &["commit", "-qm", "b", "src/b.rs"]);
    refused(&repo.no_git("side", &["commit", "-qm", "a", "src/a.rs"]));
    refused(&repo.no_git("side", &["commit", "-qm", "a"]));
    // An amended commit is judged by what is new in it; then by what is pushed.
    repo.git("side", &["commit", "-q", "--no-verify", "-m", "a"]);
    repo.git("side", &["commit", "-q", "--amend", "-m", "other words"]);
    repo.git("", &["init", "-q", "--bare", "remote"]);
    repo.git("main", &["remote", "add", "origin", "../remote"]);
    repo.git("main", &["push", "-q", "origin", "main"]);
    for what in ["side", "side:refs/heads/new", "+side:main"] {
        refused(&repo.no_git("side", &["push", "-q", "origin", what]));
    }
    for tag in [&["tag", "light"][..], &["tag", "-a", "whole", "-m", "x"]] {
        repo.git("side", tag);
    }
    for tag in ["light", "whole"] {
        refused(&repo.no_git("side", &["push", "-q", "origin", tag]));
    }
    refused(&repo.no_git("side", &["push", "-q", "../remote", "side"]));
    // Without it, over what was there, and away with it.
    repo.git("side", &["push", "-q", "origin", "side~1:refs/heads/new"]);
    repo.git("side", &["push", "-q", "--force", "origin", "main:new"]);
    assert_eq!(repo.git("side", &["push", "-q", "origin", ":new"]).err, "");
    assert_eq!(repo.git("side", &["push", "-q", "origin", "main"]).err, "", "there is nothing to push");
}

#[test]
fn a_first_commit_and_one_on_no_branch_are_commits() {
    let repo = guarded();
    repo.git("side", &["checkout", "-q", "--detach"]);
    repo.write("side/src/a.rs", "bob's\n");
    refused(&repo.no_git("side", &["commit", "-qam", "a"]));
    repo.git("side", &["checkout", "-q", "--orphan", "first"]);
    refused(&repo.no_git("side", &["commit", "-qm", "all"]));
    repo.git("side", &["rm", "-qf", "--cached", "src/a.rs"]);
    repo.git("side", &["commit", "-qm", "all but one"]);
    repo.git("", &["init", "-q", "new"]);
    repo.yes("new", "setup git");
    repo.take("new", "alice", "a --path src/a.rs");
    repo.write("new/src/a.rs", "bob's\n");
    repo.git("new", &["add", "."]);
    refused(&repo.no_git("new", &["commit", "-qm", "first"]));
}
