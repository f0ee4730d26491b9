//! `claim list`: orders, filters, a table on a terminal and lines in a pipe, with what can't be read among them.

use std::fs;

use serde_json::Value;

use super::terminal::shown;
use crate::support::World;

/// The ids of a plain list.
fn listed(world: &World, line: &str) -> Vec<String> {
    let out = world.say(&format!("list {line}")).out;
    out.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// Nodes in many states; no two were submitted at one moment.
fn desk() -> World {
    let world = World::new();
    let adds = [
        "TK-10 --priority 1 --queue q1",
        "TK-9 --priority 1 --queue q2 --project roof",
        "TK-2 --priority 0 --project cellar",
        "TK-1 --title Door",
        "waits --after TK-1 --priority 9",
        "stuck",
        "over",
    ];
    for (day, add) in adds.iter().enumerate() {
        assert_eq!(world.say(&format!("add {add}")).exit, 0);
        let id = add.split(' ').next().unwrap();
        world
            .edit(id, |json| json["task"]["submitted_at"] = format!("2020-01-0{}T00:00:00Z", day + 1).into());
    }
    world.say("block stuck --reason why");
    let over = world.take("over").token;
    world.say(&format!("complete over --token {over}"));
    world.take("TK-9 --owner zoe --lease 2h");
    world.take("bare --owner alice --lease 20m");
    world
}

#[test]
fn it_is_sorted_as_asked_and_reversed() {
    let world = desk();
    for (line, ids) in [
        ("", "TK-1 TK-10 TK-2 TK-9 bare over stuck waits"),
        ("--sort id", "TK-1 TK-2 TK-9 TK-10 bare over stuck waits"),
        ("--sort id --reverse", "waits stuck over bare TK-10 TK-9 TK-2 TK-1"),
        ("--sort priority", "TK-2 TK-10 TK-9 TK-1 stuck over waits bare"),
        ("--sort priority -r", "waits over stuck TK-1 TK-9 TK-10 TK-2 bare"),
        ("--sort age", "TK-10 TK-9 TK-2 TK-1 waits stuck over bare"),
        ("--sort state", "TK-1 TK-2 TK-10 waits TK-9 bare stuck over"),
        ("--sort state --reverse", "over stuck TK-9 bare waits TK-1 TK-2 TK-10"),
        ("--sort owner", "bare TK-9 TK-1 TK-2 TK-10 over stuck waits"),
        ("--sort owner --reverse", "TK-9 bare TK-1 TK-2 TK-10 over stuck waits"),
        ("--sort expires", "bare TK-9 TK-1 TK-2 TK-10 over stuck waits"),
        ("--reverse", "waits stuck over bare TK-9 TK-2 TK-10 TK-1"),
    ] {
        assert_eq!(listed(&world, line).join(" "), ids, "{line}");
        let json: Value = world.json(&format!("list {line}")).expect(0);
        let of_json: Vec<&str> =
            json["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect();
        assert_eq!(of_json.join(" "), ids, "{line} --json");
    }
    assert_eq!(world.say("list --sort size").exit, 2);
}

#[test]
fn tickets_of_one_age_go_by_their_numbers() {
    let world = World::new();
    for id in ["TK-10", "TK-9", "TK-010", "TK-1000000000000000000000000000000", "TK-2"] {
        world.say(&format!("add {id}"));
        world.edit(id, |json| json["task"]["submitted_at"] = "2020-01-01T00:00:00Z".into());
    }
    let expected = "TK-2 TK-9 TK-10 TK-010 TK-1000000000000000000000000000000";
    assert_eq!(listed(&world, "--sort age").join(" "), expected);
    assert_eq!(listed(&world, "--sort priority").join(" "), expected);
}

#[test]
fn filters_may_be_given_several_times() {
    let world = desk();
    for (line, ids) in [
        ("--project roof --project cellar", "TK-2 TK-9"),
        ("--queue q1 --queue q2", "TK-10 TK-9"),
        ("--queue q2 --project roof", "TK-9"),
        ("--queue q1 --project roof", ""),
        ("--state claimed --state done", "TK-9 bare over"),
        ("--state ready --state waiting --queue default", "TK-1 TK-2 waits"),
        ("--state claimed --owner zoe", "TK-9"),
    ] {
        assert_eq!(listed(&world, line).join(" "), ids, "{line}");
    }
    for bad in [["--queue", ""], ["--project", ""], ["--state", "open"], ["--state", ""]] {
        assert_eq!(world.run(&["list", bad[0], bad[1]]).exit, 2, "{bad:?}");
    }
}

#[test]
fn in_a_pipe_it_is_lines_as_ever() {
    let world = desk();
    let said = world.say("list");
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[0], "TK-1 generation=0 ready");
    assert!(lines[3].starts_with("TK-9 generation=1 claimed by zoe, ends in 1h59m"), "{lines:?}");
    assert!(lines[5].starts_with("over generation=1 done by "), "{lines:?}");
    assert_eq!(lines[6].split(" by ").next().unwrap(), "stuck generation=0 blocked", "{lines:?}");
    assert_eq!(lines[7], "waits generation=0 waiting: it waits for TK-1, which is ready");
    assert_eq!(lines.len(), 8);
}

#[test]
fn on_a_terminal_it_is_a_table_that_fits() {
    let world = desk();
    let long = "Mend the roof — 屋根を直す ".repeat(9);
    world.run(&["add", "long", "--title", &long]);
    world.run(&["add", "odd\u{1b}[2J", "--title", "two\nlines"]);
    let table = shown(world.claim().arg("list"), 100);
    assert_eq!(
        table[0].split_whitespace().collect::<Vec<_>>(),
        ["ID", "STATE", "OWNER", "GEN", "LEFT", "PRIO", "QUEUE", "PROJECT", "TITLE"]
    );
    assert_eq!(table.len(), 11, "a line each: {table:#?}");
    let row = |id: &str| {
        let line = table.iter().find(|line| line.starts_with(&format!("{id} "))).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("TK-9"), ["TK-9", "claimed", "zoe", "1", "1h59m", "1", "q2", "roof"]);
    assert_eq!(row("TK-1"), ["TK-1", "ready", "-", "0", "-", "5", "default", "-", "Door"]);
    assert_eq!(row("bare")[..4], ["bare", "claimed", "alice", "1"]);
    assert!(
        table.iter().any(|line| line.contains(r"odd\u{1b}[2J") && line.ends_with(r"two\nlines")),
        "{table:#?}"
    );
    for width in [45, 60, 80, 100, 200, 1000] {
        let mut command = world.claim();
        let table = shown(command.arg("list").env("NO_COLOR", "1"), width);
        assert_eq!(table.len(), 11, "{width}: {table:#?}");
        for line in &table {
            assert!(columns(line) <= usize::from(width), "{width}: {} {line:?}", columns(line));
        }
        let cut = table.iter().find(|line| line.starts_with("lo")).unwrap();
        assert_eq!(cut.ends_with('…'), width < 1000, "{width}: {cut:?}");
        assert!(width >= 1000 || columns(cut) + 2 >= usize::from(width), "no room is left: {cut:?}");
    }
    // What all have alike is no column.
    let head = &shown(world.claim().args(["list", "--queue", "default", "--project", "cellar"]), 100)[0];
    assert!(!head.contains("QUEUE") && !head.contains("PROJECT") && head.contains("TITLE"), "{head}");
    let none = shown(world.claim().args(["list", "--queue", "none"]), 100);
    assert_eq!(none, [""; 0], "no head without a body");
    let json = shown(world.claim().args(["list", "--json"]), 100);
    assert!(json.len() == 1 && json[0].starts_with('{'));
}

/// How many columns a line takes: two for each of these characters.
fn columns(line: &str) -> usize {
    line.chars().map(|c| if ('\u{3000}'..'\u{a000}').contains(&c) { 2 } else { 1 }).sum()
}

#[test]
fn thousands_are_listed_whole_in_order_with_bad_ones_among_them() {
    let world = World::new();
    world.say("add task --title Door --input [1]");
    world.take("held --owner alice");
    let record = |id: &str| fs::read_to_string(world.record(id)).unwrap();
    let (task, held) = (record("task"), record("held"));
    let expected: Vec<String> = (1000..4000).map(|n| format!("n{n}")).collect();
    for (at, id) in expected.iter().enumerate() {
        let text = match at {
            17 => "{\"format\": 1".to_owned(),
            1700 => task.clone(), // another's
            2999 => task.replace("\"format\": 1", "\"format\": 2").replace("\"task\"", &format!("{id:?}")),
            _ if at % 3 == 0 => held.replace("\"held\"", &format!("{id:?}")),
            _ => task.replacen("\"task\"", &format!("{id:?}"), 1),
        };
        fs::write(world.record(id), text).unwrap();
    }
    let bad = ["n1017", "n2700", "n3999"];
    let said = world.say("list");
    assert_eq!(said.exit, 6);
    let good: Vec<&String> = expected.iter().filter(|id| !bad.contains(&id.as_str())).collect();
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), good.len() + 2);
    assert!(lines[0].starts_with("held generation=1 claimed by alice, ends in "));
    for (line, id) in lines[1..].iter().zip(good) {
        let says =
            if line.contains("claimed") { "generation=1 claimed by alice" } else { "generation=0 ready" };
        assert!(line.starts_with(&format!("{id} {says}")), "{line}");
    }
    let named: Vec<bool> = bad.iter().map(|id| said.err.contains(&format!("{id}.claim"))).collect();
    assert_eq!((named, said.err.lines().count()), (vec![true; 3], 3), "{}", said.err);
    let json: Value = world.json("list --state claimed").expect(6);
    assert_eq!(json["nodes"].as_array().unwrap().len(), 1001);
    let unreadable: Vec<&str> =
        json["unreadable"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(unreadable, bad);
}

/// A list reads records by a way of its own: each says there what it says to `show`.
#[test]
fn a_list_says_of_each_node_what_show_says() {
    let world = desk();
    world.say("pool set p 1");
    world.say("add pooled --pool p --title \"quoted\\u0041");
    world.take("pooled-too --pool p --lease 3d");
    world.say("add deadline --deadline 2020-01-01T00:00:00Z");
    world.say("add later --not-before 1000d");
    world.say("add asked --review --subscriber s");
    let token = world.take("asked").token;
    world.run(&["complete", "asked", "--token", &token, "--result", "{\"a\":[1,2]}"]);
    world.say("review asked --accept --by bob");
    world.say("add built --after asked --after over");
    world.say("add tried --max-attempts 1");
    world.expired("tried");
    world.expired("lapsed");
    let token = world.take("renewed").token;
    world.say(&format!("renew renewed --token {token} --progress {{}}"));
    world.take("forced");
    world.run(&["acquire", "forced", "--force", "why", "--owner", "odd\u{7}\"name\\"]);
    world.say("add @s/x");
    world.say("scope cancel s");
    world.say("add called-off");
    world.say("cancel called-off --reason no");
    world.edit("bare", |json| json["new"] = serde_json::json!({"deep": [1]}));
    let list = world.say("list");
    assert_eq!(list.exit, 0, "{list:?}");
    assert!(list.out.lines().count() >= 20);
    // Times may go on between the two.
    let untimed = |line: &str| {
        line.split(", ends in ").next().unwrap().split(" for another ").next().unwrap().to_owned()
    };
    for line in list.out.lines() {
        let (id, says) = line.split_once(" generation=").unwrap();
        let show = world.say(&format!("show {id}"));
        let first = show.out.lines().next().unwrap();
        let says = says.split_once(' ').unwrap().1;
        assert_eq!(untimed(&format!("{id} {says}")), untimed(first));
    }
}
