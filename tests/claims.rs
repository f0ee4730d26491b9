//! Who owns a node, asked of the binary: races behind a barrier, tokens, owners, one answer everywhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod support;

use std::collections::HashSet;
use std::fs;

use serde_json::{Value, json};
use support::{Claimed, Refused, Running, Said, World, race, said, until, words};

fn winners(said: &[Said]) -> Vec<&Said> {
    assert!(said.iter().all(|said| said.exit < 2), "{said:?}");
    said.iter().filter(|said| said.exit == 0).collect()
}

/// Twenty acquires of `id`, each by another owner.
fn twenty(id: &str) -> Vec<Vec<String>> {
    (0..20).map(|n| words(&format!("acquire {id} --owner w{n} --json"))).collect()
}

#[test]
fn simultaneous_claims_have_one_winner_whatever_they_meet() {
    let world = World::new();
    for round in 0..5 {
        let id = format!("fresh/{round}");
        let said = race(&world, &twenty(&id));
        let [winner] = winners(&said)[..] else { panic!("{said:?}") };
        let claimed: Claimed = winner.expect(0);
        assert_eq!((claimed.generation, claimed.attempt, claimed.version), (1, 1, 1));
        assert_eq!(world.say(&format!("check {id} --token {}", claimed.token)).exit, 0);
        for lost in said.iter().filter(|said| said.exit == 1) {
            let holder = lost.expect::<Refused>(1).holder.unwrap();
            assert_eq!((holder.owner.as_str(), holder.generation), (claimed.owner.as_str(), 1));
        }

        // A maker that died between making and publishing left an empty file.
        let id = format!("dead-maker{round}");
        fs::write(world.record(&id), "").unwrap();
        assert_eq!(winners(&race(&world, &twenty(&id))).len(), 1);
    }
}

#[test]
fn a_release_and_twenty_claims_have_one_winner() {
    let world = World::new();
    for round in 0..5 {
        let held = world.take(&format!("n{round} --owner old")).token;
        let mut commands = twenty(&format!("n{round}"));
        commands.push(words(&format!("release n{round} --token {held}")));
        let mut said = race(&world, &commands);
        assert_eq!(said.pop().unwrap().exit, 0);
        let won = winners(&said).len();
        assert!(won <= 1, "{said:?}");
        let after = world.json(&format!("acquire n{round}"));
        assert_eq!(after.exit, won as i32, "{after:?}");
    }
}

#[test]
fn a_renewal_and_twenty_takeovers_have_one_winner() {
    let world = World::new();
    for round in 0..5 {
        let id = format!("n{round}");
        let old = world.expired(&id);
        let mut commands = twenty(&id);
        commands.insert(10, words(&format!("renew {id} --token {old}")));
        let mut said = race(&world, &commands);
        assert_eq!(said.remove(10).exit, 3, "a lease that is over was renewed");
        assert_eq!(winners(&said).len(), 1);
        assert_eq!(world.stored(&id)["generation"], 2);
    }
}

#[test]
fn forced_takeovers_at_once_give_each_a_generation_and_the_last_the_node() {
    let world = World::new();
    world.take("n --owner old --lease 1h");
    let commands: Vec<_> =
        (0..8).map(|n| words(&format!("acquire n --owner w{n} --force now --json"))).collect();
    let claimed: Vec<Claimed> = race(&world, &commands).iter().map(|said| said.expect(0)).collect();
    let mut generations: Vec<_> = claimed.iter().map(|claimed| claimed.generation).collect();
    generations.sort_unstable();
    assert_eq!(generations, (2..10).collect::<Vec<_>>());
    for claimed in &claimed {
        let exit = world.say(&format!("check n --token {}", claimed.token)).exit;
        assert_eq!(exit, if claimed.generation == 9 { 0 } else { 3 });
    }
}

#[test]
fn simultaneous_completions_record_one_result() {
    let world = World::new();
    let token = world.take("n").token;
    let commands: Vec<_> =
        (0..8).map(|n| words(&format!("complete n --token {token} --result {n} --json"))).collect();
    let said = race(&world, &commands);
    let result = world.stored("n")["outcome"]["result"].clone();
    let first: Vec<Value> = said.iter().filter(|said| said.exit == 0).map(|said| said.expect(0)).collect();
    assert_eq!(first.len(), 1, "{said:?}");
    assert_eq!(first[0]["replay"], false);
    assert!(
        said.iter().all(|said| said.exit == 0 || said.expect::<Refused>(4).code == "IDEMPOTENCY_CONFLICT")
    );
    assert_eq!(world.say(&format!("complete n --token {token} --result {result}")).exit, 0);
}

#[test]
fn each_winner_has_a_token_that_nobody_else_has() {
    let world = World::new();
    let commands: Vec<_> = (0..20).map(|n| words(&format!("acquire n{n} --owner same --json"))).collect();
    let tokens: HashSet<_> =
        race(&world, &commands).iter().map(|said| said.expect::<Claimed>(0).token).collect();
    assert_eq!(tokens.len(), 20);
}

#[test]
fn the_owner_comes_from_the_argument_before_the_variable_before_all_else() {
    let world = World::new();
    let owner = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = world.claim();
        command.args(["where", "--json"]).args(arguments).envs(variables.iter().copied());
        let place: Value = said(&mut command).expect(0);
        place["owner"].as_str().unwrap().to_owned()
    };
    let all = [("CLAIM_OWNER", "variable"), ("CLAUDE_CODE_SESSION_ID", "session"), ("USER", "user")];
    assert_eq!(owner(&["--owner", "argument"], &all), "argument");
    assert_eq!(owner(&[], &all), "variable");
    assert_eq!(owner(&[], &all[1..]), "session");
    assert_eq!(owner(&[], &[("CODEX_THREAD_ID", "thread")]), "thread");
    assert_eq!(owner(&[], &[("CLAIM_OWNER", ""), ("CODEX_THREAD_ID", "thread")]), "thread");
    let place = owner(&[], &all[2..]);
    assert!(place.starts_with("user@") && place.contains(':'), "{place}");
    let mut command = world.claim();
    command.args(["acquire", "n", "--json"]).envs(all);
    assert_eq!(said(&mut command).expect::<Claimed>(0).owner, "variable");
    assert_eq!(world.stored("n")["claim"]["owner"], "variable");
}

#[test]
fn the_owners_name_grants_nothing() {
    let world = World::new();
    let first = world.take("n --owner me");
    assert_eq!(world.refused("acquire n --owner me", 1, "CLAIM_HELD").holder.unwrap().owner, "me");
    for command in ["renew", "release", "complete", "check"] {
        world.refused(&format!("{command} n --owner me --token guessed"), 3, "STALE_CLAIM");
    }
    assert_eq!(world.say(&format!("check n --token {}", first.token)).exit, 0);
}

/// Every way to ask whether a node can be taken says the same.
#[test]
fn all_views_agree() {
    let world = World::new();
    let mut worker = Running::idle();
    world.take("held");
    let release = |id: &str, more: &str| {
        let token = world.take(id).token;
        assert_eq!(world.say(&format!("release {id} --token {token} {more}")).exit, 0);
    };
    release("free", "");
    release("blocked", "--block why");
    world.expired("over");
    let token = world.take("done").token;
    assert_eq!(world.say(&format!("complete done --token {token}")).exit, 0);
    world.take(&format!("orphan --lease 1h --while-pid {}", worker.id()));
    world.take(&format!("hung --lease 500ms --while-pid {}", std::process::id()));
    world.take(&format!("kept --lease 500ms --until-exit {}", std::process::id()));
    until("the lease is over", || world.say("why hung").out.contains("can be taken"));
    worker.end();
    for name in ["failed", "cancelled", "expired"] {
        let token = world.take(name).token;
        assert_eq!(world.say(&format!("complete {name} --token {token}")).exit, 0);
        world.edit(name, |json| json["state"] = json!(name));
    }
    let expected = [
        ("blocked", "blocked", "BLOCKED"),
        ("cancelled", "cancelled", "CANCELLED"),
        ("done", "done", "ALREADY_DONE"),
        ("expired", "expired", "EXPIRED"),
        ("failed", "failed", "FAILED"),
        ("free", "ready", ""),
        ("held", "claimed", "CLAIM_HELD"),
        ("hung", "ready", ""),
        ("kept", "claimed", "CLAIM_HELD"),
        ("orphan", "ready", ""),
        ("over", "ready", ""),
    ];
    for (id, state, code) in expected {
        let takeable = code.is_empty();
        let why: Value = world.json(&format!("why {id}")).expect(0);
        assert_eq!(why["takeable"], takeable, "{id}: {why}");
        assert_eq!(why["reason"].as_str().unwrap_or_default(), code, "{id}: {why}");
        let show: Value = world.json(&format!("show {id}")).expect(0);
        assert_eq!(show["takeable"], takeable, "{id}: {show}");
        assert_eq!(show["holder"].is_object(), state == "claimed", "{id}: {show}");
        let dry = world.json(&format!("acquire {id} --dry-run"));
        assert_eq!(dry.exit == 0, takeable, "{id}: {dry:?}");
        for filter in ["ready", "claimed", "blocked", "done", "failed", "cancelled", "expired"] {
            let list: Value = world.json(&format!("list --state {filter}")).expect(0);
            let listed = list["nodes"].as_array().unwrap().iter().any(|node| node["id"] == id);
            assert_eq!(listed, filter == state, "{id} in {filter}");
        }
    }
    let all: Value = world.json("list").expect(0);
    let ids: Vec<_> = all["nodes"].as_array().unwrap().iter().map(|node| node["id"].clone()).collect();
    assert_eq!(ids, expected.map(|(id, ..)| json!(id)));
    for (id, _, code) in expected {
        let taken = world.json(&format!("acquire {id}"));
        assert_eq!(taken.exit == 0, code.is_empty(), "{id}: {taken:?}");
    }
}

#[test]
fn list_filters_by_owner() {
    let world = World::new();
    world.take("a --owner alice");
    world.take("b --owner bob");
    let list: Value = world.json("list --owner bob").expect(0);
    assert_eq!(list["nodes"].as_array().unwrap().len(), 1);
    assert_eq!(list["nodes"][0]["id"], "b");
}

#[test]
fn the_next_acquire_sees_every_release() {
    let world = World::new();
    for round in 1..=1000 {
        let acquired = world.say("acquire n --owner w");
        assert_eq!(acquired.exit, 0, "round {round}: {acquired:?}");
        let token = acquired.line().split("token=").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        let released = world.say(&format!("release n --token {token}"));
        assert_eq!(released.line(), format!("RELEASED n generation={round}"));
    }
}

#[test]
fn a_renewal_in_flight_revives_no_released_claim() {
    let world = World::new();
    for round in 0..5 {
        let token = world.take(&format!("n{round}")).token;
        let mut commands = vec![words(&format!("renew n{round} --token {token}")); 8];
        commands.insert(4, words(&format!("release n{round} --token {token}")));
        let mut said = race(&world, &commands);
        assert_eq!(said.remove(4).exit, 0);
        assert!(said.iter().all(|said| said.exit == 0 || said.exit == 3), "{said:?}");
        assert_eq!(world.stored(&format!("n{round}"))["state"], "ready");
        world.refused(&format!("renew n{round} --token {token}"), 3, "STALE_CLAIM");
    }
}

#[test]
fn a_former_holder_can_not_touch_its_successors_claim() {
    let world = World::new();
    let old = world.expired("n");
    let bob = world.take("n --owner bob --lease 1h");
    let before = fs::read(world.record("n")).unwrap();
    for command in
        ["release n", "release n --block x", "renew n", "complete n", "complete n --result 1", "check n"]
    {
        let stale = world.refused(&format!("{command} --token {old}"), 3, "STALE_CLAIM");
        assert_eq!(stale.holder.unwrap().owner, "bob");
        assert!(stale.message.contains("bob holds it (generation 2, ends in "), "{}", stale.message);
    }
    assert_eq!(fs::read(world.record("n")).unwrap(), before);
    assert_eq!(world.say(&format!("check n --token {}", bob.token)).exit, 0);
    world.refused("acquire n --owner carol", 1, "CLAIM_HELD");
}

#[test]
fn a_token_shown_to_a_record_that_is_not_there_is_stale_and_makes_none() {
    let world = World::new();
    world.take("other");
    let before = world.snapshot();
    for command in ["check", "renew", "release", "complete"] {
        let stale = world.refused(&format!("{command} n --token 0123456789abcdef"), 3, "STALE_CLAIM");
        assert_eq!((stale.version, stale.generation), (Some(0), Some(0)));
    }
    assert_eq!(world.snapshot(), before);
}

#[test]
fn a_completion_is_told_apart_from_its_replay_and_from_a_conflict() {
    let world = World::new();
    let old = world.expired("n");
    let bob = world.take("n --owner bob").token;
    let done = world.say(&format!("complete n --token {bob} --result [1,2.50]"));
    assert_eq!((done.exit, done.line()), (0, "DONE n generation=2"));
    let before = fs::read(world.record("n")).unwrap();
    let again: Value = world.json(&format!("done n --token {bob} --result [1,2.50]")).expect(0);
    assert_eq!(again["replay"], true);
    world.refused(&format!("complete n --token {bob} --result [1]"), 4, "IDEMPOTENCY_CONFLICT");
    world.refused(&format!("complete n --token {bob}"), 4, "IDEMPOTENCY_CONFLICT");
    world.refused(&format!("complete n --token {old} --result [1,2.50]"), 3, "STALE_CLAIM");
    world.refused(&format!("release n --token {bob}"), 3, "STALE_CLAIM");
    world.refused(&format!("renew n --token {bob}"), 3, "STALE_CLAIM");
    let lost = world.refused("acquire n", 1, "ALREADY_DONE");
    assert_eq!(lost.message, "already done by bob (generation 2)");
    assert_eq!(fs::read(world.record("n")).unwrap(), before);
}

#[test]
fn the_answer_of_a_claim_says_what_stands() {
    let world = World::new();
    let claimed = world.take("build/parser --owner alice --lease 1h30m");
    assert!(claimed.ok && claimed.schema == 1 && !claimed.forced && claimed.progress.is_null());
    assert_eq!(claimed.dir, world.dir().to_str().unwrap());
    assert_eq!((claimed.id.as_str(), claimed.owner.as_str()), ("build/parser", "alice"));
    assert_eq!((claimed.generation, claimed.version, claimed.attempt), (1, 1, 1));
    assert_eq!((claimed.lease_ms, claimed.reclaimed_from), (5_400_000, None));
    let remaining = claimed.remaining_ms.unwrap();
    assert!(remaining > 0 && remaining <= 5_400_000, "{remaining}");
    let stored = world.stored("build/parser");
    assert_eq!(stored["claim"]["expires_at"], claimed.expires_at.as_str());
    assert!(claimed.expires_at.ends_with('Z') && claimed.expires_at.len() == 24, "{}", claimed.expires_at);
    for (field, expected) in [("format", json!(1)), ("id", json!("build/parser")), ("version", json!(1))] {
        assert_eq!(stored[field], expected);
    }
    assert_eq!((&stored["state"], &stored["generation"]), (&json!("claimed"), &json!(1)));
    assert_eq!((&stored["attempt"], &stored["claim"]["lease_ms"]), (&json!(1), &json!(5_400_000)));
    for field in ["owner", "token_hash", "acquired_at", "expires_at", "lease_ms", "host", "pid"] {
        assert!(!stored["claim"][field].is_null(), "{field}");
    }
}

#[test]
fn a_lease_is_thirty_seconds_unless_said() {
    let world = World::new();
    let claimed = said(world.claim().args(["acquire", "n", "--json"]).env_remove("CLAIM_LEASE"));
    assert_eq!(claimed.expect::<Claimed>(0).lease_ms, 30_000);
}

#[test]
fn a_token_is_never_shown_again() {
    let world = World::new();
    let token = world.take("n --owner alice").token;
    let hash = world.stored("n")["claim"]["token_hash"].as_str().unwrap().to_owned();
    let looks = |token: &str| {
        let commands = ["show n", "why n", "list", "doctor", "where", "acquire n", "acquire n --dry-run"];
        for said in commands.iter().flat_map(|line| [world.say(line), world.json(line)]) {
            let text = format!("{}{}", said.out, said.err);
            assert!(!text.contains(token) && !text.contains(&hash) && !text.contains("token"), "{said:?}");
        }
        for command in ["check", "renew", "release --block x"] {
            let said = world.json(&format!("{command} --token {token} n"));
            assert!(!format!("{}{}", said.out, said.err).contains(token), "{said:?}");
        }
    };
    looks(&token);
    let claimed = world.take("n --force again");
    assert_eq!(world.say(&format!("complete n --token {}", claimed.token)).exit, 0);
    looks(&claimed.token);
}

#[test]
fn a_node_that_was_made_and_never_owned_is_not_there() {
    let world = World::new();
    world.take("other");
    fs::write(world.record("n"), "").unwrap();
    world.refused("show n", 1, "NOT_FOUND");
    world.refused("show m", 1, "NOT_FOUND");
    assert_eq!(world.say("show m").line(), "unknown m — there is no such node");
    let why: Value = world.json("why n").expect(0);
    assert_eq!(why["takeable"], true);
    let list: Value = world.json("list").expect(0);
    assert_eq!(list["nodes"].as_array().unwrap().len(), 1);
    assert_eq!(world.take("n --seen 0").generation, 1);
}

#[test]
fn a_dry_run_says_what_the_run_then_does() {
    let world = World::new();
    world.expired("n");
    let dry: Value = world.json("acquire n --owner bob --dry-run").expect(0);
    assert_eq!((&dry["dry_run"], &dry["generation"], &dry["attempt"]), (&json!(true), &json!(2), &json!(2)));
    assert_eq!(dry["reclaimed_from"], "old");
    assert!(dry.get("token").is_none());
    assert_eq!(world.say("acquire n --owner bob --dry-run").line(), "WOULD CLAIM n generation=2 attempt=2");
    let claimed = world.take("n --owner bob");
    assert_eq!((claimed.generation, claimed.attempt, claimed.version), (2, 2, 2));
    world.refused("acquire n --owner carol --dry-run", 1, "CLAIM_HELD");
}
