//! The README's commands do what it says: every `console` block, in order, in one shell.
//!
//! `$ ` begins a command; the lines up to the next one are its output, standard error included. `…` stands for
//! any text within a line.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

struct Step {
    command: String,
    expected: Vec<String>,
}

#[test]
fn the_tour_is_true() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let steps = steps(&readme);
    assert!(steps.len() > 10, "the README has lost its tour");
    let output = in_one_shell(&steps);
    for (step, got) in steps.iter().zip(&output) {
        let got: Vec<&str> = got.lines().collect();
        let same = got.len() == step.expected.len()
            && got.iter().zip(&step.expected).all(|(got, expected)| matches(expected, got));
        assert!(
            same,
            "$ {}\nthe README says:\n{}\nit says:\n{}",
            step.command,
            step.expected.join("\n"),
            got.join("\n")
        );
    }
    assert_eq!(steps.len(), output.len(), "the shell ended early: {output:?}");
}

fn steps(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            line => match (line.strip_prefix("$ "), line.strip_prefix("> "), steps.last_mut()) {
                (Some(command), ..) => {
                    steps.push(Step { command: command.to_owned(), expected: Vec::new() });
                }
                (None, Some(more), Some(step)) if step.expected.is_empty() => {
                    step.command.push('\n');
                    step.command.push_str(more);
                }
                (_, _, Some(step)) => step.expected.push(line.to_owned()),
                _ => panic!("output before the first command: {line}"),
            },
        }
    }
    steps
}

const MARK: &str = "--- end of step ---";

fn in_one_shell(steps: &[Step]) -> Vec<String> {
    let scratch = tempfile::tempdir().unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_claim")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash")
        .args(["--norc", "--noprofile"])
        .current_dir(scratch.path())
        .env_clear()
        .envs([("PATH", path.as_str()), ("USER", "you"), ("GIT_CONFIG_GLOBAL", "/dev/null")])
        .env("HOME", scratch.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let script: String = steps
        .iter()
        .map(|step| format!("{{ {}\n}} 2>&1 </dev/null; echo '{MARK}'\n", step.command))
        .collect();
    shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap();
    let mut outputs: Vec<String> = output.split(&format!("{MARK}\n")).map(str::to_owned).collect();
    outputs.pop();
    outputs
}

/// Does `got` fit `expected`, in which `…` stands for anything?
fn matches(expected: &str, got: &str) -> bool {
    let mut rest = got;
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn a_pattern_fits_what_it_says() {
    assert!(matches("a … c", "a b c") && matches("…", "") && matches("x", "x"));
    assert!(!matches("a … c", "a b d") && !matches("x", "xy") && !matches("a…b…c", "acb"));
}
