//! A directory moves to etcd with all it has.

use serde_json::{Value, json};

use crate::Remote;
use crate::server::Cluster;
use crate::support::World;

#[test]
fn everything_goes_over_and_nothing_is_overwritten() {
    let cluster = Cluster::start(1);
    let (world, remote) = (World::new(), Remote::on(&cluster, "moved"));
    let done = world.take("build/a --owner alice --receipt a-key");
    let complete = format!("complete build/a --token {} --result 1", done.token);
    assert_eq!(world.say(&complete).exit, 0);
    let freed = world.take("b");
    assert_eq!(world.say(&format!("release b --token {}", freed.token)).exit, 0);
    let large = format!("{:?}", "y".repeat(2 << 20));
    std::fs::write(world.root.join("large"), &large).unwrap();
    assert_eq!(world.say("add t --input @large --title T").exit, 0);
    assert_eq!(world.say("add after-t --after t").exit, 0);
    for n in 1..=3 {
        assert_eq!(world.say(&format!("mail send box {n} --as w")).exit, 0);
    }
    assert_eq!(world.say("mail read box --as r --limit 2").exit, 0);
    assert_eq!(world.say("mail ack box 1 --as r").exit, 0);
    assert_eq!(world.say("pool set gpu 2").exit, 0);
    let held = world.take("held --pool gpu");
    let before = world.snapshot();

    let copy = format!("copy --from {} --to {}", world.dir().display(), remote.url);
    let refused: Value = world.json(&copy).expect(1);
    assert_eq!((&refused["code"], &refused["live"]), (&json!("CLAIM_HELD"), &json!(["held"])));
    assert_eq!(remote.say("list").out, "", "nothing was copied");
    for _ in 0..2 {
        let copied: Value = world.json(&format!("{copy} --live")).expect(0);
        assert_eq!((&copied["nodes"], &copied["live"]), (&json!(5), &json!(["held"])));
    }
    assert_eq!(world.snapshot(), before, "what is copied stays as it is");

    assert_eq!(remote.say("list").out, world.say("list").out);
    assert_eq!(remote.take("b").generation, 2);
    let replay: Value = remote.json(&complete).expect(0);
    assert_eq!(replay["replay"], true);
    assert_eq!(remote.take("build/a --owner alice --receipt a-key").token, done.token);
    let read: Value = remote.json("mail read box --as r").expect(0);
    let numbers: Vec<_> = read["messages"].as_array().unwrap().iter().map(|m| m["number"].clone()).collect();
    assert_eq!(numbers, [2, 3]);
    assert_eq!(remote.say(&format!("renew held --token {}", held.token)).exit, 0);
    assert!(remote.say("pool show gpu").out.starts_with("gpu slots=2 used=1"));
    let looked: Value = remote.json("next").expect(0);
    assert!(
        looked["input_blob"]["path"].is_null() && looked["input_blob"]["bytes"] == large.len(),
        "{looked}"
    );
    let free = format!("release t --token {}", looked["token"].as_str().unwrap());
    assert_eq!(remote.say(&free).exit, 0);
    let worked = remote.say("work --idle-exit=100ms -- wc -c");
    assert_eq!(worked.exit, 0, "{worked:?}");
    let result: Value = remote.json("result t").expect(0);
    assert_eq!(result["result"], large.len() + 1);
    assert_eq!(remote.say("result after-t").exit, 0);

    // The copy has gone on; nothing of that is undone.
    let again: Value = world.json(&format!("{copy} --live")).expect(4);
    assert_eq!(again["code"], "IDEMPOTENCY_CONFLICT");
    assert_eq!(remote.say("result after-t").exit, 0);
}
