//! `claim reap`: what is over is given back, what is live is never touched, and what is idle is told of.

use std::sync::Arc;
use std::time::Duration;

use claimdir::store::Memory;
use claimdir::{Directory, Renewal};
use serde_json::{Value, json};

use crate::support::World;
use crate::support::fake::{Fake, by, id};

const HOUR_MS: i64 = 3_600_000;

fn ids(told: &Value, list: &str) -> Vec<String> {
    told[list].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

/// As if the claim had been taken in the year 2020 and renewed ever since.
fn old(world: &World, id: &str) {
    world.edit(id, |json| json["claim"]["acquired_at"] = "2020-01-01T00:00:00Z".into());
}

#[test]
fn the_reaper_gives_over_ones_back_and_leaves_live_ones() {
    let world = World::new();
    world.say("add last --max-attempts 1");
    for id in ["last", "over"] {
        world.expired(id);
    }
    let live = world.take("live --owner alice");
    let idle = world.take("idle --owner bob --engine codex");
    old(&world, "idle");
    let kept = |id: &str| std::fs::read(world.record(id)).unwrap();
    let before = (kept("live"), kept("idle"));
    let told: Value = world.json("reap --apply").expect(0);
    let became: Vec<_> =
        told["claims"].as_array().unwrap().iter().map(|it| (&it["id"], &it["became"])).collect();
    assert_eq!(became, [(&json!("last"), &json!("failed")), (&json!("over"), &json!("ready"))]);
    assert_eq!(ids(&told, "idle"), ["idle"]);
    assert_eq!((kept("live"), kept("idle")), before, "not a byte of a live claim");
    for held in [live, idle] {
        assert_eq!(world.say(&format!("check {} --token {}", held.id, held.token)).exit, 0);
    }
    assert_eq!(world.take("over --owner carol").generation, 2);
}

#[test]
fn a_live_claim_without_progress_is_told_of_and_touched_by_nobody() {
    let world = World::new();
    let held = world.take("n --owner alice --engine codex");
    let taken: Value = world.json("reap").expect(0);
    assert_eq!((&taken["claims"], &taken["idle"]), (&json!([]), &json!([])), "it has just begun");
    old(&world, "n");
    let before = world.snapshot();
    let told: Value = world.json("reap").expect(0);
    let idle = &told["idle"][0];
    assert_eq!(
        (&idle["id"], &idle["attempt"], &idle["since"]),
        (&json!("n"), &json!(1), &json!("2020-01-01T00:00:00.000Z"))
    );
    assert_eq!((&idle["holder"]["owner"], &idle["holder"]["engine"]), (&json!("alice"), &json!("codex")));
    assert!(
        idle["idle_ms"].as_i64().unwrap() > 6 * HOUR_MS
            && idle["holder"]["remaining_ms"].as_i64().unwrap() > 0
    );
    let said = world.say("reap");
    assert!(
        said.out.starts_with("n is live and idle: alice with codex has told of no progress for "),
        "{said:?}"
    );
    assert!(said.err.contains("no claim is over"), "{said:?}");
    assert_eq!(ids(&world.json("reap --idle 30000d").expect(0), "idle"), [""; 0], "not for so long");
    assert_eq!(world.snapshot(), before, "looking writes nothing");
    // A renewal is none; one with progress is.
    world.json(&format!("renew n --token {}", held.token)).expect::<Value>(0);
    assert_eq!(ids(&world.json("reap").expect(0), "idle"), ["n"]);
    world.json(&format!("renew n --token {} --progress 1", held.token)).expect::<Value>(0);
    assert_eq!(ids(&world.json("reap").expect(0), "idle"), [""; 0]);
    assert_eq!(ids(&world.json("reap --idle 0s").expect(0), "idle"), ["n"]);
    world.json(&format!("renew n --token {}", held.token)).expect::<Value>(0);
    assert!(
        world.stored("n")["claim"]["progressed"]["at"].is_string(),
        "and is still known after the next one"
    );
    for bad in ["", "6", "-6h", "soon"] {
        assert_eq!(world.run(&["reap", &format!("--idle={bad}")]).exit, 2, "{bad}");
    }
}

#[test]
fn idleness_counts_by_the_clock_that_nobody_sets() {
    let host = Fake::new("boot");
    let directory = Directory::over(Arc::new(Memory::default()), host.clone());
    let (_, lease) = (directory.create(), by("alice").lease(Duration::from_secs(24 * 3600)));
    let lease = directory.try_acquire(&id("n"), &lease).unwrap().unwrap();
    let idle = |hours: u64| {
        let found = directory.reap_and_watch(true, Duration::from_secs(hours * 3600)).unwrap();
        assert_eq!(found.over, []);
        found.idle.first().map(|idle| idle.idle_ms)
    };
    host.pass(5 * HOUR_MS);
    assert_eq!((idle(6), idle(5)), (None, Some(5 * HOUR_MS)), "since it was taken");
    let renewal = |progress: Option<Value>| Renewal { lease: None, progress };
    let token = lease.token().clone();
    directory.renew(&id("n"), &token, &renewal(Some(json!("half")))).unwrap().unwrap();
    host.pass(6 * HOUR_MS);
    directory.renew(&id("n"), &token, &renewal(None)).unwrap().unwrap();
    assert_eq!((idle(6), idle(7)), (Some(6 * HOUR_MS), None), "a renewal without progress is none");
    host.step(-100 * HOUR_MS);
    assert_eq!(idle(6), Some(6 * HOUR_MS), "somebody set the wall clock back");
    host.step(200 * HOUR_MS);
    assert_eq!(idle(7), None, "and forth");
    // Who takes it over begins anew.
    let forced =
        by("bob").lease(Duration::from_secs(24 * 3600)).force(claimdir::Force::because("why").unwrap());
    let _ = directory.try_acquire(&id("n"), &forced).unwrap().unwrap().leave();
    assert_eq!((idle(1), idle(0)), (None, Some(0)));
    host.step(-HOUR_MS);
    assert_eq!(idle(0), Some(0), "never less than none");
    let _ = lease.leave();
}

#[test]
fn releasing_a_lease_that_is_over_is_told_as_lost_and_harms_nobody() {
    let world = World::new();
    for (id, next) in
        [("unclaimed", None), ("taken", Some("take taken --owner bob")), ("reaped", Some("reap --apply"))]
    {
        world.say(&format!("add {id}"));
        let token = world.expired(id);
        if let Some(line) = next {
            assert_eq!(world.say(line).exit, 0);
        }
        let before = world.snapshot();
        for line in [format!("release {id}"), format!("release {id} --block why"), format!("renew {id}")] {
            world.refused(&format!("{line} --token {token}"), 3, "STALE_CLAIM");
        }
        assert_eq!(world.snapshot(), before, "{id}");
    }
    assert_eq!(world.json("show taken").expect::<Value>(0)["holder"]["owner"], "bob");
}
