//! `--engine`: what drives an owner, kept with the claim.

use serde_json::{Value, json};

use crate::support::{Refused, World, said};

#[test]
fn an_engine_is_kept_with_the_claim_and_shown() {
    let world = World::new();
    let taken = world.take("n --owner alice --engine codex");
    assert_eq!(taken.engine.as_deref(), Some("codex"));
    assert_eq!(world.stored("n")["claim"]["engine"], "codex");
    let shown: Value = world.json("show n").expect(0);
    assert_eq!((&shown["claim"]["engine"], &shown["holder"]["engine"]), (&json!("codex"), &json!("codex")));
    assert!(world.say("show n").out.starts_with("n claimed by alice with codex, ends in "));
    assert!(world.say("list").out.starts_with("n generation=1 claimed by alice with codex, ends in "));
    let listed: Value = world.json("list").expect(0);
    assert_eq!(listed["nodes"][0]["holder"]["engine"], "codex");
    let lost = world.refused("acquire n --owner bob", 1, "CLAIM_HELD");
    assert_eq!(lost.holder.unwrap().engine.as_deref(), Some("codex"));
    world.json(&format!("renew n --token {}", taken.token)).expect::<Value>(0);
    assert_eq!(world.stored("n")["claim"]["engine"], "codex", "a renewal keeps it");
    world.say(&format!("release n --token {}", taken.token));
    assert!(!world.stored("n").to_string().contains("codex"), "a bare key keeps no attempts");
}

#[test]
fn it_comes_from_a_variable_too_and_goes_with_all_that_takes() {
    let world = World::new();
    world.say("add a");
    let mut next = world.claim();
    let next: Value = said(next.args(["next", "--json"]).env("CLAIM_ENGINE", "claude-code")).expect(0);
    assert_eq!((&next["id"], &next["engine"]), (&json!("a"), &json!("claude-code")));
    let mut given = world.claim();
    given.args(["acquire", "b", "--engine", "codex", "--json"]).env("CLAIM_ENGINE", "claude-code");
    assert_eq!(said(&mut given).expect::<Value>(0)["engine"], "codex", "what is given goes first");
    let shown = ["--", "sh", "-c", r#""$CLAIM" show "$CLAIM_ID""#];
    for before in [&["run", "c"][..], &["work", "--max", "1"]] {
        world.say("add d");
        let mut command = world.claim();
        command.args(before).args(["--engine", "codex"]).args(shown);
        let said = said(command.env("CLAIM", env!("CARGO_BIN_EXE_claim")));
        let result: Value = world.json("show d").expect(0);
        let told = if before[0] == "run" { said.out } else { result["outcome"]["result"].to_string() };
        assert!(told.contains(" with codex, ends in "), "{told} {result}");
    }
    assert_eq!(world.stored("d")["attempts"][0]["engine"], "codex", "a task's attempt keeps it");
    assert!(world.say("show d").out.contains(" with codex generation=1 completed"));
}

#[test]
fn a_takeover_does_not_inherit_it() {
    let world = World::new();
    for id in ["forced", "ended"] {
        world.take(&format!("{id} --owner alice --engine codex"));
    }
    world.edit("ended", |json| {
        json["claim"]["clock"]["ends_mono_ms"] = 1.into();
        json["claim"]["expires_at"] = "2020-01-01T00:00:00Z".into();
    });
    for line in ["forced --owner bob --force stuck", "ended --owner bob"] {
        let taken = world.take(line);
        assert_eq!((taken.generation, taken.engine.as_deref()), (2, None));
    }
    let text = world.stored("forced").to_string() + &world.stored("ended").to_string();
    assert!(!text.contains("codex"), "{text}");
}

#[test]
fn it_makes_another_request_only_where_it_is_given() {
    let world = World::new();
    let plain = world.take("n --owner alice --receipt k1");
    let again = world.take("n --owner alice --receipt k1");
    assert_eq!((again.replay, again.token), (true, plain.token));
    world.refused("acquire n --owner alice --receipt k1 --engine codex", 4, "RECEIPT_CONFLICT");
    let driven = world.take("m --owner alice --receipt k2 --engine codex");
    let again = world.take("m --owner alice --receipt k2 --engine codex");
    assert_eq!((again.replay, again.token, again.engine), (true, driven.token, driven.engine));
    for other in ["--engine claude-code", ""] {
        world.refused(&format!("acquire m --owner alice --receipt k2 {other}"), 4, "RECEIPT_CONFLICT");
    }
}

#[test]
fn one_that_is_no_name_is_refused_and_one_that_would_harm_is_shown_harmlessly() {
    let world = World::new();
    for (bad, exit) in [(String::new(), 2), ("x".repeat(257), 2)] {
        for command in [&["acquire", "n"][..], &["next"]] {
            let mut arguments = command.to_vec();
            arguments.extend(["--json", "--engine", bad.as_str()]);
            let refused: Refused = world.run(&arguments).expect(exit);
            assert!(refused.message.contains("1 to 256 bytes"), "{refused:?}");
        }
    }
    assert!(!world.dir().exists(), "nothing was made for it");
    let odd = "\u{1b}[2J\n";
    world.run(&["acquire", "n", "--engine", odd]);
    assert!(world.say("list").out.contains(r"with \u{1b}[2J\n, ends in"));
    assert_eq!(world.json("show n").expect::<Value>(0)["holder"]["engine"], odd);
}
