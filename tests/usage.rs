//! Wrong usage is told with what would be right.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use serde_json::Value;
use support::World;

#[test]
fn a_number_out_of_range_is_told_the_range() {
    let world = World::new();
    for (line, range) in [
        ("add t --priority -1", "from 0 to 9"),
        ("add t --priority 10", "from 0 to 9"),
        ("add t --priority x", "from 0 to 9"),
        ("add t --max-attempts -1", "from 1 to 1000000"),
        ("add t --max-attempts 0", "from 1 to 1000000"),
        ("log --limit -1", "from 0 on"),
        ("mail read box --limit -1", "from 1 on"),
        ("mail ack box -1", "from 0 on"),
        ("acquire n --seen -1", "from 0 on"),
        ("acquire n --while-pid -1", "from 1 to 2147483647"),
        ("pool set p -1", "from 0 on"),
        ("scope wait s --succeeded 0", "from 1 on"),
        ("work --max -1 -- true", "from 1 on"),
        ("work --concurrency 257 -- true", "from 1 to 256"),
    ] {
        let said = world.say(line);
        let told = said.err.contains(&format!("not a whole number {range}"));
        assert!(said.exit == 2 && told, "{line}: {said:?}");
    }
    assert!(!world.dir().exists());
}

#[test]
fn a_slip_in_an_id_is_told_of() {
    let world = World::new();
    world.take("parser");
    for (line, exit, code) in [
        ("show prser", 1, "NOT_FOUND"),
        ("cancel parsre", 1, "NOT_FOUND"),
        ("check prser --token t", 3, "STALE_CLAIM"),
        ("complete paser --token t", 3, "STALE_CLAIM"),
    ] {
        assert_eq!(world.refused(line, exit, code).did_you_mean.as_deref(), Some("parser"), "{line}");
    }
    // Of a node that is there nothing else was meant.
    world.take("parsers");
    assert_eq!(world.refused("check parser --token t", 3, "STALE_CLAIM").did_you_mean, None);
}

#[test]
fn a_title_has_an_end() {
    let world = World::new();
    let title = "ö".repeat(512);
    assert_eq!(world.run(&["add", "t", "--title", &title]).exit, 0);
    let refused = world.run(&["add", "u", "--title", &format!("{title}x"), "--json"]);
    let refused: support::Refused = refused.expect(2);
    assert_eq!((refused.code.as_str(), refused.message.contains("1024 bytes")), ("USAGE", true));
    assert_eq!(world.say("show u").exit, 1);
}

#[test]
fn help_promises_only_what_is_done() {
    let world = World::new();
    let help = |command: &str| world.say(&format!("{command} --help")).out;
    // It waits anyway.
    assert!(!help("work").contains("--wait") && help("next").contains("--wait"));
    assert_eq!(world.say("work --wait -- true").exit, 2);
    // Whose object goes where.
    assert!(
        help("run").contains("Exit codes: the command's own") && help("log").contains("an object on a line")
    );
    assert!(help("pool run").contains("on standard error") && help("log").contains("an object a line"));
    // What the comments of arguments that are shared would hide.
    for (command, words) in [
        ("setup", "twice is as once"),
        ("guard", "CLAIM_GUARD=warn"),
        ("prime", "less than 2 KB"),
        ("work", "65 rejects"),
    ] {
        assert!(help(command).contains(words), "{command}");
    }
}

#[test]
fn a_directory_that_was_named_and_is_not_there_is_told_of() {
    let world = World::new();
    let none = world.root.join("nonne");
    let told = format!("there is no claim directory at {} yet (named by --dir)", none.display());
    for (line, exit) in [
        ("list", 0),
        ("show n", 1),
        ("why n", 0),
        ("mail list", 0),
        ("pool show", 0),
        ("reap", 0),
        ("doctor", 0),
        ("check n --token t", 3),
    ] {
        let said = world.say(&format!("{line} --dir {}", none.display()));
        assert_eq!(said.err.lines().filter(|line| **line == told).count(), 1, "{line}: {said:?}");
        let quiet = world.say(&format!("{line} --quiet --dir {}", none.display()));
        assert!(!quiet.err.contains("no claim directory"), "{line}: {quiet:?}");
        assert_eq!((said.exit, quiet.exit), (exit, exit), "{line}: {said:?}");
    }
    assert!(!none.exists());
    let listed: Value = world.say(&format!("list --json --dir {}", none.display())).expect(0);
    assert_eq!(listed["nodes"], Value::Array(Vec::new()));
    let made = world.say(&format!("acquire n --dir {}", none.display()));
    assert!(made.err.contains("made the claim directory") && !made.err.contains("yet"), "{made:?}");
    assert_eq!(world.say(&format!("list --dir {}", none.display())).err, "");
}
