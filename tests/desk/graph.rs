//! `claim graph`: what waits for what, for Mermaid and Graphviz.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::World;

/// a <- b <- c, a <- d, and e for itself.
fn chain() -> World {
    let world = World::new();
    for add in [
        "add a --title Dig",
        "add b --after a --queue q --project p",
        "add c --after b --priority 1",
        "add d --after a --after e0 --queue q",
        "add e",
    ] {
        if add.contains("e0") {
            world.say("add e0");
        }
        assert_eq!(world.say(add).exit, 0, "{add}");
    }
    let token = world.take("e0").token;
    world.say(&format!("complete e0 --token {token}"));
    world.take("bare");
    world
}

fn drawn(world: &World, line: &str) -> (String, String) {
    let graph: Value = world.json(&format!("graph {line}")).expect(0);
    let list = |name: &str| graph[name].as_array().unwrap().clone();
    let nodes: Vec<String> = list("nodes").iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
    let edges: Vec<String> = list("edges")
        .iter()
        .map(|it| format!("{}>{}", it["from"].as_str().unwrap(), it["to"].as_str().unwrap()))
        .collect();
    (nodes.join(" "), edges.join(" "))
}

#[test]
fn it_tells_what_waits_for_what() {
    let world = chain();
    for (line, nodes, edges) in [
        ("", "a b c d e e0", "a>b b>c a>d e0>d"),
        ("--queue q", "b d", ""),
        ("--queue q --queue default --state waiting", "b c d", "b>c"),
        ("--project p", "b", ""),
        ("--state done --state waiting", "b c d e0", "b>c e0>d"),
        ("b", "a b c", "a>b b>c"),
        ("d", "a d e0", "a>d e0>d"),
        ("a", "a b c d", "a>b b>c a>d"),
        ("e", "e", ""),
        ("bare", "bare", ""),
        ("a --queue q", "a b d", "a>b a>d"),
    ] {
        assert_eq!(drawn(&world, line), (nodes.to_owned(), edges.to_owned()), "{line}");
    }
    let graph: Value = world.json("graph b").expect(0);
    let expected =
        json!({"id": "b", "state": "waiting", "title": null, "queue": "q", "project": "p", "priority": 5});
    assert_eq!(graph["nodes"][1], expected);
    assert_eq!(world.json("graph c --format dot").expect::<Value>(0)["edges"], graph["edges"]);
    world.refused("graph none", 1, "NOT_FOUND");
    for bad in ["--format png", "--state open", "a b"] {
        assert_eq!(world.say(&format!("graph {bad}")).exit, 2, "{bad}");
    }
    let before = world.snapshot();
    world.say("graph");
    assert_eq!(world.snapshot(), before, "looking writes nothing");
}

#[test]
fn of_a_scope_it_draws_its_tasks_only() {
    let world = chain();
    world.say("add --scope s x");
    world.say("add --scope s y --after x --after @t/z");
    world.say("add --scope t z");
    world.say("add --scope s y --after x --after @t/z");
    assert_eq!(drawn(&world, "--scope s"), ("@s/x @s/y".to_owned(), "@s/x>@s/y".to_owned()));
    assert_eq!(drawn(&world, "--scope s y").0, "@s/x @s/y @t/z", "what it waits for in another one, too");
}

#[test]
fn what_is_not_there_or_not_readable_is_drawn_as_that() {
    let world = chain();
    std::fs::remove_file(world.record("e0")).unwrap();
    std::fs::write(world.record("a"), "{").unwrap();
    let graph: Value = world.json("graph").expect(6);
    let states: Vec<String> = graph["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{}:{}", it["id"].as_str().unwrap(), it["state"].as_str().unwrap()))
        .collect();
    assert_eq!(states.join(" "), "b:waiting c:waiting d:waiting e:ready a:unreadable e0:missing");
    assert_eq!(graph["unreadable"][0]["id"], "a");
    let said = world.say("graph");
    assert_eq!(said.exit, 6);
    assert!(said.out.starts_with("flowchart TD\n") && said.err.contains("a.claim"), "{said:?}");
}

/// Ids and titles that would be something to who draws them.
const ODD: [&str; 12] = [
    "end",
    "\"]; n0 --> n1",
    "a\nsubgraph x",
    "-->|x|",
    "class",
    "a\\",
    "<b>&amp;#quot;</b>",
    "%%{init: {}}%%",
    "1. list",
    "`**x**`",
    "字—é",
    "[(({\u{1b}}))]",
];

fn odd() -> World {
    let world = World::new();
    for (at, id) in ODD.iter().enumerate() {
        let title = format!("--title={id} title");
        let before = at.checked_sub(1).map(|at| format!("--after={}", ODD[at]));
        let mut arguments = vec!["add", title.as_str()];
        arguments.extend(before.as_deref());
        arguments.extend(["--", id]);
        let said = world.run(&arguments);
        assert_eq!(said.exit, 0, "{id:?} {said:?}");
    }
    world
}

/// A name of the drawing's own: `n` and a number.
fn is_name(text: &str) -> bool {
    text.strip_prefix('n')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Every line is one of the statements that Mermaid's grammar has for a flowchart, and each label is one string.
#[test]
fn a_mermaid_flowchart_is_valid_whatever_the_ids() {
    let out = odd().say("graph").out;
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("flowchart TD"));
    let (mut names, mut classes, mut edges) = (BTreeSet::new(), BTreeSet::new(), 0);
    for line in lines {
        let line = line.strip_prefix("    ").unwrap();
        if let Some(class) = line.strip_prefix("classDef ") {
            let (name, style) = class.split_once(' ').unwrap();
            assert!(classes.remove(name), "a class of no node: {line}");
            assert!(style.split(',').all(|it| it.split_once(":#").is_some()), "{line}");
        } else if let Some((from, to)) = line.split_once(" --> ") {
            assert!(names.contains(from) && names.contains(to), "{line}");
            edges += 1;
        } else {
            let (name, rest) = line.split_once("[\"").unwrap();
            let (label, class) = rest.split_once("\"]:::").unwrap();
            assert!(is_name(name) && names.insert(name), "{line}");
            let text = label.replacen("<br/>", "", 1);
            assert!(
                !text.contains(['"', '`', '<', '>', '&', '[', ']', '{', '}', '|', '(', ')', '%']),
                "{line}"
            );
            for code in text.split('#').skip(1) {
                let (number, _) = code.split_once(';').unwrap();
                assert!(number.parse::<u32>().is_ok_and(|number| char::from_u32(number).is_some()), "{line}");
            }
            assert!(class.bytes().all(|b| b.is_ascii_lowercase()), "{line}");
            classes.insert(class);
        }
    }
    assert_eq!((names.len(), edges, classes.len()), (ODD.len(), ODD.len() - 1, 0), "{out}");
}

/// Reads a quoted string of DOT; what is left after it.
fn string(text: &str) -> &str {
    let mut chars = text.strip_prefix('"').unwrap().chars();
    loop {
        match chars.next().unwrap() {
            '"' => return chars.as_str(),
            '\\' => assert!(matches!(chars.next(), Some('\\' | '"' | 'n')), "{text}"),
            c => assert!(!c.is_control(), "{text}"),
        }
    }
}

/// Every line is one of the statements that DOT's grammar has.
#[test]
fn a_graphviz_digraph_is_valid_whatever_the_ids() {
    let out = odd().say("graph --format dot").out;
    let mut lines: Vec<&str> = out.lines().collect();
    assert_eq!((lines.remove(0), lines.pop()), ("digraph claims {", Some("}")));
    assert_eq!(lines.remove(0), "    node [shape=box, style=filled];");
    let (mut names, mut edges) = (BTreeSet::new(), 0);
    for line in lines {
        let line = line.trim_start().strip_suffix(';').unwrap();
        if let Some((from, to)) = line.split_once(" -> ").filter(|(from, _)| is_name(from)) {
            assert!(names.contains(from) && names.contains(to), "{line}");
            edges += 1;
            continue;
        }
        let (name, mut rest) = line.split_once(" [").unwrap();
        assert!(is_name(name) && names.insert(name), "{line}");
        for attribute in ["label=", "class=", "fillcolor=", "color="] {
            rest = string(rest.trim_start_matches(", ").strip_prefix(attribute).unwrap());
        }
        assert_eq!(rest, "]", "{line}");
    }
    assert_eq!((names.len(), edges), (ODD.len(), ODD.len() - 1), "{out}");
}
