//! Paths that go with a claim, by real processes in worktrees that the real git has made.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A repository `main` with a second worktree `side`.
struct World {
    root: PathBuf,
    _scratch: tempfile::TempDir,
}

struct Said {
    exit: i32,
    json: Value,
}

impl World {
    fn new() -> World {
        let scratch = tempfile::tempdir().unwrap();
        let world = World { root: scratch.path().canonicalize().unwrap(), _scratch: scratch };
        world.git("", &["init", "-q", "main"]);
        world.git("main", &["commit", "-q", "--allow-empty", "-m", "one"]);
        world.git("main", &["worktree", "add", "-q", "--detach", "../side"]);
        for folder in ["main/src/deep", "side/src/deep"] {
            fs::create_dir_all(world.root.join(folder)).unwrap();
        }
        world
    }

    fn git(&self, folder: &str, arguments: &[&str]) {
        let done = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@t"])
            .args(arguments)
            .current_dir(self.root.join(folder))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.root)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .status();
        assert!(done.unwrap().success(), "git {arguments:?}");
    }

    fn command(&self, folder: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claim"));
        command
            .args(["--json", "--no-sync"])
            .args(arguments)
            .current_dir(self.root.join(folder))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn claim(&self, folder: impl AsRef<Path>, arguments: &[&str]) -> Said {
        heard(self.command(folder, arguments).spawn().unwrap(), arguments)
    }

    #[track_caller]
    fn yes(&self, folder: impl AsRef<Path>, arguments: &[&str]) -> Value {
        let said = self.claim(folder, arguments);
        assert_eq!(said.exit, 0, "{arguments:?}: {}", said.json);
        said.json
    }

    #[track_caller]
    fn no(&self, folder: impl AsRef<Path>, arguments: &[&str], exit: i32, code: &str) -> Value {
        let said = self.claim(folder, arguments);
        assert_eq!(
            (said.exit, said.json["code"].as_str()),
            (exit, Some(code)),
            "{arguments:?}: {}",
            said.json
        );
        said.json
    }

    /// The paths that are reserved.
    fn reserved(&self) -> Vec<(String, String)> {
        let listed = self.yes("main", &["list", "--paths"]);
        let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        listed["paths"].as_array().unwrap().iter().map(|row| (text(row, "path"), text(row, "node"))).collect()
    }

    /// What `path`, given in `folder`, is kept as.
    #[track_caller]
    fn kept(&self, folder: impl AsRef<Path>, path: &str) -> String {
        let checked = self.yes(folder, &["check", "--path", path]);
        checked["paths"][0]["path"].as_str().unwrap().to_owned()
    }
}

fn heard(child: Child, what: &[&str]) -> Said {
    let output = child.wait_with_output().unwrap();
    let exit = output.status.code().unwrap();
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{what:?}: {exit}, {}", String::from_utf8_lossy(&output.stderr)));
    Said { exit, json }
}

fn text(json: &Value, name: &str) -> String {
    json[name].as_str().unwrap().to_owned()
}

#[test]
fn a_claim_gets_all_its_paths_or_none() {
    let world = World::new();
    let claimed = world.yes("main", &["acquire", "a", "--owner", "al", "--path", "src/x", "--path", "docs"]);
    assert_eq!(claimed["paths"], serde_json::json!(["docs", "src/x"]));
    let refused = world.no("side", &["acquire", "b", "--path", "free", "--path", "docs"], 4, "PATH_CLASH");
    assert_eq!((text(&refused, "path"), text(&refused, "node")), ("docs".into(), "a".into()));
    assert_eq!(refused["holder"]["owner"], "al");
    assert!(refused["holder"]["remaining_ms"].as_i64().unwrap() > 0, "{refused}");
    assert_eq!(world.reserved(), [("docs".into(), "a".into()), ("src/x".into(), "a".into())]);
    assert!(!world.root.join("main/.claims/b.claim").exists());
    world.yes("side", &["acquire", "b", "--path", "free"]);
}

#[test]
fn above_and_below_clash_and_siblings_do_not() {
    let world = World::new();
    world.yes("main", &["acquire", "a", "--path", "src/a"]);
    for path in ["src/a", "src", "src/a/below", ".", "src/**"] {
        world.no("main", &["acquire", "b", "--path", path], 4, "PATH_CLASH");
        world.no("main", &["check", "--path", path], 4, "PATH_CLASH");
    }
    for (node, path) in [("b", "src/b"), ("c", "src/ab"), ("d", "src.rs"), ("e", "a"), ("f", "src/A")] {
        world.yes("main", &["acquire", node, "--path", path]);
    }
}

#[test]
fn one_file_is_one_path_in_all_worktrees() {
    let world = World::new();
    world.yes("side/src/deep", &["acquire", "a", "--path", "../x"]);
    assert_eq!(world.reserved(), [("src/x".into(), "a".into())]);
    world.no("main/src", &["acquire", "b", "--path", "x"], 4, "PATH_CLASH");
    world.yes("main", &["acquire", "b", "--path", "x"]);
}

#[test]
fn a_path_has_one_form_however_it_is_given() {
    let world = World::new();
    symlink(world.root.join("main"), world.root.join("link")).unwrap();
    let below = |path: &str| format!("{}/{path}", world.root.display());
    for (folder, path, kept) in [
        ("main", "./src//x/", "src/x"),
        ("main", "src/deep/../x", "src/x"),
        ("main/src/deep", "../../other", "other"),
        ("main/src", ".", "src"),
        ("main/src", "..", "."),
        ("main/src", "deep/**", "src/deep"),
        ("main/src", "../../main/y", "y"),
        ("side", &below("side/new/z"), "new/z"),
        ("main", &below("main"), "."),
        ("main", &below("link/src/x"), "src/x"),
        ("link/src", "x", "src/x"),
        ("main", &below("link/../main/src/../x"), "x"),
    ] {
        assert_eq!(world.kept(folder, path), kept, "{path} in {folder}");
    }
}

#[test]
fn what_is_no_path_of_the_worktree_is_refused() {
    let world = World::new();
    let other = world.root.join("side/x").display().to_string();
    for path in ["", "..", "../side/x", "/etc/passwd", "/", &other, "*.rs", "a/**/b", "a?", "[ab].rs", "**"] {
        let refused = world.no("main", &["acquire", "a", "--path", path], 2, "INVALID_PATH");
        assert!(refused["message"].as_str().unwrap().starts_with("not a path that can be reserved: "));
    }
    assert!(!world.root.join("main/.claims").exists());
    // A name that happens to look like a pattern, of a file that is there.
    fs::write(world.root.join("main/src/[id].ts"), "").unwrap();
    assert_eq!(world.kept("main/src", "[id].ts"), "src/[id].ts");
    use std::os::unix::ffi::OsStrExt;
    let raw = std::ffi::OsStr::from_bytes(b"a\xff");
    let child = world.command("main", &["acquire", "a", "--path"]).arg(raw).spawn().unwrap();
    let said = heard(child, &["not UTF-8"]);
    assert_eq!((said.exit, said.json["code"].as_str()), (2, Some("INVALID_PATH")));
}

#[test]
fn case_is_folded_where_git_says_so() {
    let world = World::new();
    world.yes("main", &["acquire", "a", "--path", "Src/X"]);
    world.yes("main", &["acquire", "b", "--path", "src/x"]);
    world.git("main", &["config", "core.ignorecase", "true"]);
    world.yes("main", &["acquire", "c", "--path", "Docs/Ä"]);
    world.no("side", &["acquire", "d", "--path", "docs/ä/below"], 4, "PATH_CLASH");
}

#[test]
fn outside_git_paths_are_relative_to_the_folder_of_the_claim_directory() {
    let world = World::new();
    fs::create_dir_all(world.root.join("plain/sub")).unwrap();
    world.yes("plain", &["init"]);
    assert_eq!(world.kept("plain/sub", "x"), "sub/x");
    world.no("plain/sub", &["check", "--path", "../../x"], 2, "INVALID_PATH");
}

#[test]
fn check_tells_free_mine_and_others() {
    let world = World::new();
    let token = text(&world.yes("main", &["acquire", "a", "--path", "src"]), "token");
    let state = |json: Value| json["paths"][0]["state"].as_str().unwrap().to_owned();
    assert_eq!(state(world.yes("side", &["check", "--path", "docs"])), "free");
    assert_eq!(state(world.yes("side", &["check", "--path", "src/x", "--token", &token])), "mine");
    assert_eq!(state(world.yes("side", &["check", "a", "--path", "src", "--token", &token])), "mine");
    let refused = world.no("side", &["check", "--path", "src/x", "--token", "other"], 4, "PATH_CLASH");
    assert_eq!(text(&refused, "node"), "a");
    world.yes("main", &["release", "a", "--token", &token]);
    assert_eq!(state(world.yes("side", &["check", "--path", "src/x", "--token", &token])), "free");
    world.no("side", &["check", "a", "--path", "src", "--token", &token], 3, "STALE_CLAIM");
    world.no("side", &["check", "a", "--path", "src"], 2, "USAGE");
    world.no("side", &["check", "--token", &token], 2, "USAGE");
    // A claim in the environment is not asked for, unless nothing else is.
    let from_environment = |arguments: &[&str]| {
        let mut command = world.command("side", arguments);
        heard(command.env("CLAIM_ID", "a").env("CLAIM_TOKEN", &token).spawn().unwrap(), arguments).exit
    };
    assert_eq!(from_environment(&["check", "--path", "src"]), 0);
    assert_eq!(from_environment(&["check"]), 3);
}

#[test]
fn paths_end_with_their_claim() {
    let world = World::new();
    let token = text(&world.yes("main", &["acquire", "a", "--path", "src"]), "token");
    world.yes("main", &["release", "a", "--token", &token]);
    assert_eq!(world.reserved(), []);
    let token = text(&world.yes("side", &["acquire", "b", "--path", "src/x"]), "token");
    world.yes("main", &["complete", "b", "--token", &token]);
    world.yes("side", &["acquire", "c", "--path", "src"]);
    // A takeover of the node has the paths that it asks for, and no others.
    world.yes("side", &["acquire", "c", "--force", "test", "--path", "docs"]);
    assert_eq!(world.reserved(), [("docs".into(), "c".into())]);
}

#[test]
fn an_ended_claim_loses_its_paths_and_can_not_be_renewed_any_more() {
    let world = World::new();
    let token = text(&world.yes("main", &["acquire", "a", "--lease", "1s", "--path", "src"]), "token");
    world.yes("side", &["acquire", "b", "--wait=1m", "--path", "src/x"]);
    world.no("main", &["renew", "a", "--token", &token], 3, "STALE_CLAIM");
    let shown = world.yes("main", &["show", "a"]);
    assert_eq!((text(&shown, "state"), shown["attempt"].as_u64()), ("ready".into(), Some(1)));
}

#[test]
fn the_last_attempt_at_a_task_fails_when_its_paths_are_taken() {
    let world = World::new();
    world.yes("main", &["add", "a", "--max-attempts", "1"]);
    world.yes("main", &["acquire", "a", "--lease", "1s", "--path", "src"]);
    world.yes("side", &["acquire", "b", "--wait=1m", "--path", "src"]);
    assert_eq!(text(&world.yes("main", &["show", "a"]), "state"), "failed");
}

#[test]
fn a_waiter_gets_the_path_when_it_is_released() {
    let world = World::new();
    let token = text(&world.yes("main", &["acquire", "a", "--lease", "1h", "--path", "src"]), "token");
    let refused = world.no("side", &["acquire", "b", "--wait=60ms", "--path", "src"], 5, "WAIT_TIMEOUT");
    assert_eq!(text(&refused, "node"), "a");
    let waiter = world.command("side", &["acquire", "b", "--wait=5m", "--path", "src"]).spawn().unwrap();
    world.yes("main", &["release", "a", "--token", &token]);
    assert_eq!(heard(waiter, &["waiter"]).exit, 0);
}

#[test]
fn a_refused_claim_leaves_no_receipt_and_a_retry_gets_the_paths_it_had() {
    let world = World::new();
    let token = text(&world.yes("main", &["acquire", "a", "--path", "src"]), "token");
    let request = ["acquire", "b", "--owner", "x", "--path", "src", "--path", "y", "--receipt", "key"];
    world.no("side", &request, 4, "PATH_CLASH");
    assert!(!world.root.join("main/.claims/.store/receipts").exists());
    world.yes("main", &["release", "a", "--token", &token]);
    let first = world.yes("side", &request);
    let again = world.yes("side", &request);
    assert_eq!((&first["token"], &first["paths"]), (&again["token"], &again["paths"]));
    assert_eq!(again["replay"], true);
    let other = ["acquire", "b", "--owner", "x", "--path", "y", "--receipt", "key"];
    world.no("side", &other, 4, "RECEIPT_CONFLICT");
    assert_eq!(world.reserved().len(), 2);
}

#[test]
fn looking_writes_nothing() {
    let world = World::new();
    world.yes("main", &["list", "--paths"]);
    world.yes("main", &["check", "--path", "src"]);
    assert!(!world.root.join("main/.claims").exists());
    world.yes("main", &["acquire", "a", "--lease", "1s", "--path", "src"]);
    world.yes("side", &["acquire", "b", "--wait=1m", "--path", "src"]);
    let files = || {
        let folder = world.root.join("main/.claims");
        ["a.claim", "b.claim", ".store/rosters/paths.roster"].map(|file| fs::read(folder.join(file)).unwrap())
    };
    let before = files();
    world.no("main", &["acquire", "c", "--path", "src", "--dry-run"], 4, "PATH_CLASH");
    world.yes("main", &["acquire", "c", "--path", "docs", "--dry-run"]);
    world.no("main", &["check", "--path", "src"], 4, "PATH_CLASH");
    world.yes("main", &["list", "--paths"]);
    assert_eq!(before, files());
}

#[test]
fn an_entry_whose_node_can_not_be_read_is_live() {
    let world = World::new();
    world.yes("main", &["acquire", "a", "--path", "src"]);
    fs::write(world.root.join("main/.claims/a.claim"), "{").unwrap();
    // No waiting helps against that.
    let refused = world.no("side", &["acquire", "b", "--wait=5m", "--path", "src"], 4, "PATH_CLASH");
    assert!(refused["holder"].is_null(), "{refused}");
    world.yes("side", &["acquire", "b", "--path", "docs"]);
    let roster = world.root.join("main/.claims/.store/rosters/paths.roster");
    fs::write(&roster, r#"{"format":2,"entries":{}}"#).unwrap();
    world.no("side", &["acquire", "c", "--path", "x"], 6, "FORMAT_TOO_NEW");
    world.yes("side", &["acquire", "c"]);
    let doctor = world.no("side", &["doctor"], 6, "RECORD_UNREADABLE");
    assert!(doctor["findings"].to_string().contains("paths.roster"), "{doctor}");
}

/// Twenty processes reach for sets of paths that overlap, again and again. Who is told yes makes a file for each
/// of its paths and removes it before it gives them back: a file that is there already is a second holder.
#[test]
fn holders_of_paths_never_overlap() {
    const SETS: [&[&str]; 5] =
        [&["p/a", "p/b"], &["p/b", "p/c"], &["p/c", "p/a"], &["p"], &["q", "p/a/deep"]];
    let world = World::new();
    let guard = Instant::now() + Duration::from_secs(120);
    let held = world.root.join("held");
    fs::create_dir(&held).unwrap();
    let worker = |number: usize| {
        let set = SETS[number % SETS.len()];
        let (node, mut wins) = (format!("n{}", number / 2), 0);
        while wins < 3 {
            assert!(Instant::now() < guard, "worker {number} has won {wins} times");
            let mut arguments = vec!["acquire", &node, "--wait=2m", "--lease", "5m"];
            set.iter().for_each(|path| arguments.extend(["--path", path]));
            let claimed = world.yes("side", &arguments);
            // The leaves that the set stands for.
            let leaves = |leaf: &&&str| {
                set.iter().any(|path| {
                    **leaf == *path
                        || leaf.starts_with(&format!("{path}/"))
                        || path.starts_with(&format!("{leaf}/"))
                })
            };
            let leaves: Vec<_> = ["p/a", "p/b", "p/c", "q"].iter().filter(leaves).collect();
            let mark = |leaf: &str| held.join(leaf.replace('/', "-"));
            for leaf in &leaves {
                fs::File::create_new(mark(leaf)).unwrap_or_else(|_| panic!("{leaf} has a second holder"));
            }
            leaves.iter().for_each(|leaf| fs::remove_file(mark(leaf)).unwrap());
            world.yes("side", &["release", &node, "--token", &text(&claimed, "token")]);
            wins += 1;
        }
    };
    std::thread::scope(|scope| {
        (0..20).for_each(|number| drop(scope.spawn(move || worker(number))));
    });
    assert_eq!(world.reserved(), []);
}
