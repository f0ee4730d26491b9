//! The README's transcript of two agents is what `scripts/agents.sh` prints: two shells in worktrees of the real git,
//! one of them killed. `CLAIM_README=write cargo test --test agents` puts it there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::path::Path;

use support::{World, said};

/// What the transcript stands after, and is enclosed in.
const BEGIN: &str = "<!-- what scripts/agents.sh prints -->\n```text\n";
const END: &str = "```\n";

#[test]
fn two_agents_one_killed_as_the_readme_has_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let world = World::new();
    let mut script = world.clean("bash");
    script.arg(root.join("scripts/agents.sh"));
    script.env("CLAIM_BIN", Path::new(env!("CARGO_BIN_EXE_claim")).parent().unwrap());
    let said = said(&mut script);
    assert_eq!((said.exit, said.err.as_str()), (0, ""), "{said:?}");
    let printed = settled(&said.out);

    let file = root.join("README.md");
    let readme = fs::read_to_string(&file).unwrap();
    let start =
        readme.find(BEGIN).unwrap_or_else(|| panic!("the README has lost its transcript")) + BEGIN.len();
    let end = start + readme[start..].find(END).unwrap();
    if std::env::var("CLAIM_README").is_ok_and(|wanted| wanted == "write") {
        return fs::write(file, format!("{}{printed}{}", &readme[..start], &readme[end..])).unwrap();
    }
    let pairs = readme[start..end].lines().zip(printed.lines());
    for (expected, printed) in pairs {
        assert_eq!(expected, printed, "the README is stale: CLAIM_README=write cargo test --test agents");
    }
    assert_eq!(&readme[start..end], printed, "the README's transcript is longer or shorter");
}

/// With `…` for what is another each time: the scratch folder, moments, and how long something still lasts.
fn settled(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let before = std::iter::once("").chain(words.iter().copied());
        let settled: Vec<String> =
            before.zip(&words).map(|(before, word)| settled_word(before, word)).collect();
        format!("{}\n", settled.join(" "))
    };
    text.lines().map(line).collect()
}

fn settled_word(before: &str, word: &str) -> String {
    let bare = word.trim_end_matches([')', '.', ',']);
    let is_moment = |text: &str| text.starts_with("20") && text.contains('T') && text.ends_with('Z');
    let is_duration = bare.ends_with(['s', 'm', 'h']) && bare.starts_with(|c: char| c.is_ascii_digit());
    match (bare.split_once('='), word.find("/app/")) {
        (None, _) if is_moment(bare) || (before == "in" && is_duration) => {
            format!("…{}", &word[bare.len()..])
        }
        (Some((name, value)), _) if is_moment(value) => format!("{name}=…"),
        (_, Some(at)) if word.starts_with('/') => format!("…{}", &word[at..]),
        _ => word.to_owned(),
    }
}
