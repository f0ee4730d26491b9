//! The names that a commit or a push touches, as git says them: bytes, from the worktree's root.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::process::{Child, Command, Stdio};

use crate::cli::bounded::Turn;

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
    let arguments =
        ["-c", "diff.relative=false", "diff", "--cached", "--name-status", "-z", "-M", "--no-ext-diff"];
    let mut git = git(&arguments);
    git.args(commit).arg("--");
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
    for line in told.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let [_, local, _, theirs] = parts[..] else { return Err(format!("{line:?} is no line of git's")) };
        let is_none = |commit: &str| commit.bytes().all(|byte| byte == b'0');
        if is_none(local) {
            continue; // the ref is removed
        }
        let mut known = Vec::new();
        if !is_none(theirs) && output(turn, vec![git(&["cat-file", "-e", theirs])]).is_ok() {
            known.push(OsString::from(format!("^{theirs}")));
        }
        let tracked = tracked(turn, remote)?;
        if known.is_empty() && tracked.is_none() {
            return Err("nothing is known of what the remote has".to_owned());
        }
        known.extend(tracked.map(|of| OsString::from(format!("--remotes={of}"))));
        let mut range = git(&["rev-list", local, "--not"]);
        // After `--not` a `^` would mean the contrary.
        range.args(
            known
                .iter()
                .map(|it| it.to_str().and_then(|it| it.strip_prefix('^')).map_or(it.as_os_str(), OsStr::new)),
        );
        range.arg("--");
        let diff = git(&[
            "diff-tree",
            "--stdin",
            "-r",
            "--root",
            "-z",
            "-M",
            "-c",
            "--name-status",
            "--no-commit-id",
        ]);
        names.extend(touched(&output(turn, vec![range, diff])?));
    }
    Ok(names)
}

/// The remote, if there are branches that follow it.
fn tracked(turn: &Turn, remote: Option<&OsStr>) -> Result<Option<String>, String> {
    let Some(remote) = remote.and_then(OsStr::to_str).filter(|remote| !remote.is_empty()) else {
        return Ok(None);
    };
    let refs = format!("refs/remotes/{remote}/");
    let found = output(turn, vec![git(&["for-each-ref", "--count=1", &refs])])?;
    Ok((!found.is_empty()).then(|| remote.to_owned()))
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

/// The names in `--name-status -z`: both of a rename, the new one of a copy, the one of all else.
fn touched(status: &[u8]) -> BTreeSet<OsString> {
    let mut names = BTreeSet::new();
    let mut fields = status.split(|byte| *byte == 0);
    while let Some(kind) = fields.next() {
        let name = |field: Option<&[u8]>| {
            field.filter(|name| !name.is_empty()).map(|name| OsString::from_vec(name.to_vec()))
        };
        match kind {
            [] => {}
            // A merge has a letter for each parent, and one name.
            [first @ (b'R' | b'C'), digit, ..] if digit.is_ascii_digit() => {
                let old = name(fields.next()).filter(|_| *first == b'R');
                names.extend(old.into_iter().chain(name(fields.next())));
            }
            _ => names.extend(name(fields.next())),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_of_a_rename_are_touched_and_no_byte_is_special() {
        let status = b"M\0a\nb\0R087\0old\0new \"x\"\0C100\0from\0to\0MM\0merged\0D\0R\0";
        let names: Vec<_> = touched(status).into_iter().map(|name| name.into_string().unwrap()).collect();
        assert_eq!(names, ["R", "a\nb", "merged", "new \"x\"", "old", "to"]);
    }
}
