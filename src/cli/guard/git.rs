//! The names that a commit or a push touches, as git says them: bytes, from the worktree's root.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::process::{Child, Command, Stdio};

use crate::cli::bounded::Turn;

/// Each name that is touched, and a null byte. Of a rename both are: the old one goes, the new one comes.
const EACH_NAME: [&str; 4] = ["--name-only", "-z", "--no-renames", "--ignore-submodules=none"];

/// The names, or why they are not known.
pub(crate) type Names = Result<BTreeSet<OsString>, String>;

/// What is staged. Of a merge what differs from each of its parents: the rest is theirs, and committed already.
pub(crate) fn staged(turn: &Turn) -> Names {
    let mut names = staged_against(turn, None)?;
    for head in merged(turn)? {
        let others = staged_against(turn, Some(&head))?;
        names.retain(|name| others.contains(name));
    }
    Ok(names)
}

fn staged_against(turn: &Turn, commit: Option<&str>) -> Names {
    // Names are from the root whatever the configuration says.
    let mut git = git(&["-c", "diff.relative=false", "diff", "--cached", "--no-ext-diff"]);
    git.args(EACH_NAME).args(commit).arg("--");
    Ok(touched(&output(turn, vec![git])?))
}

/// The commits that are being merged.
fn merged(turn: &Turn) -> Result<Vec<String>, String> {
    let path = output(turn, vec![git(&["rev-parse", "--git-path", "MERGE_HEAD"])])?;
    let path = OsString::from_vec(path.strip_suffix(b"\n").unwrap_or(&path).to_vec());
    match fs::read_to_string(path) {
        Ok(heads) => Ok(heads.lines().map(str::to_owned).collect()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(format!("MERGE_HEAD can't be read: {e}")),
    }
}

/// What the remote named `remote` does not have of the refs in `told`, git's lines. Of a merge what differs from each
/// of its parents.
pub(crate) fn pushed(turn: &Turn, remote: Option<&OsStr>, told: &str) -> Names {
    let mut names = BTreeSet::new();
    for line in told.lines().filter(|line| !line.is_empty()) {
        let parts: Vec<&str> = line.split(' ').collect();
        let [_, local, _, theirs] = parts[..] else { return Err(format!("{line:?} is no line of git's")) };
        let is_none = |commit: &str| commit.bytes().all(|byte| byte == b'0');
        if is_none(local) {
            continue; // the ref is removed
        }
        let knows_theirs = || output(turn, vec![git(&["cat-file", "-e", theirs])]).is_ok();
        let theirs = Some(theirs).filter(|theirs| !is_none(theirs) && knows_theirs());
        let tracked = tracked(turn, remote)?;
        if theirs.is_none() && tracked.is_none() {
            return Err("nothing is known of what the remote has".to_owned());
        }
        let mut range = git(&["rev-list", local, "--not"]);
        range.args(theirs).args(tracked).arg("--");
        let mut diff = git(&["diff-tree", "--stdin", "-r", "--root", "-c", "--no-commit-id"]);
        diff.args(EACH_NAME);
        names.extend(touched(&output(turn, vec![range, diff])?));
    }
    Ok(names)
}

/// What names the branches that follow the remote, if there are any. Of a remote without a name, and of one that nothing
/// follows, what no other remote has is new, too.
fn tracked(turn: &Turn, remote: Option<&OsStr>) -> Result<Option<String>, String> {
    let follows = |refs: &str| -> Result<bool, String> {
        Ok(!output(turn, vec![git(&["for-each-ref", "--count=1", refs])])?.is_empty())
    };
    let named = remote.and_then(OsStr::to_str).filter(|remote| !remote.is_empty());
    match named {
        Some(remote) if follows(&format!("refs/remotes/{remote}/"))? => {
            Ok(Some(format!("--remotes={remote}")))
        }
        _ => Ok(follows("refs/remotes/")?.then(|| "--remotes".to_owned())),
    }
}

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments).env("GIT_OPTIONAL_LOCKS", "0");
    command
}

/// What the last of `commands` prints, each reading what the one before it does.
fn output(turn: &Turn, commands: Vec<Command>) -> Result<Vec<u8>, String> {
    let mut children: Vec<Child> = Vec::new();
    for mut command in commands {
        let from = children.last_mut().and_then(|child| child.stdout.take());
        command
            .stdin(from.map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let child = command.spawn().map_err(|e| format!("git can't be run: {e}"))?;
        turn.started(&child);
        children.push(child);
    }
    let mut bytes = Vec::new();
    let read =
        children.last_mut().and_then(|child| child.stdout.take()).map(|mut out| out.read_to_end(&mut bytes));
    turn.forget();
    let mut succeeded = matches!(read, Some(Ok(_)));
    for mut child in children {
        succeeded &= child.wait().is_ok_and(|status| status.success());
    }
    if succeeded { Ok(bytes) } else { Err("git could not say what is touched".to_owned()) }
}

/// The names that end with a null byte each.
fn touched(names: &[u8]) -> BTreeSet<OsString> {
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| OsString::from_vec(name.to_vec())).collect()
}
