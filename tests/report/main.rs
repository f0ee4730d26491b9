//! `claim report`: the page tells what happened, is one whole file that needs nothing else, and whatever people write is
//! text in it.

#![allow(unreachable_pub, reason = "the modules of one test")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod markup;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use markup::{Element, parse};
use serde_json::{Value, json};
use support::{World, said};

/// Texts that would become markup, or move a terminal's cursor.
const HOSTILE: [&str; 8] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "'><svg/onload=alert(1)>",
    "</title></style></script><b>bold",
    "<!-- & &amp; &lt; ]]>",
    "\u{1b}[2J\u{202e}\u{0}\u{9b}",
    "javascript:alert(1)",
    "{{7*7}} ${7*7} ü 字 🦀",
];

fn page(world: &World, line: &str) -> Element {
    let said = world.say(&format!("report --html page.html {line}"));
    assert_eq!(said.exit, 0, "{said:?}");
    let page = parse(&fs::read_to_string(world.root.join("page.html")).unwrap());
    needs_nothing_else(&page);
    page
}

/// Nothing is fetched, and nothing runs but the page's own script.
fn needs_nothing_else(page: &Element) {
    for element in page.all() {
        for (name, value) in &element.attributes {
            assert!(!name.starts_with("on") && name != "src" && name != "action", "{name}={value}");
            assert!(name != "href" || value.starts_with('#'), "{name}={value}");
        }
        let known = "html head meta title style body header h1 h2 p code time dl div dt dd b ul li svg defs g circle path \
                     rect line text use span input table thead tbody tr th td details summary footer script";
        assert!(known.split_whitespace().any(|name| name == element.name), "{}", element.name);
    }
    let style = page.named("style");
    assert!(style.len() == 1 && !style[0].text.contains("url(") && !style[0].text.contains("@import"));
    let scripts = page.named("script");
    assert!(scripts.len() <= 1);
    for script in scripts {
        assert_eq!(script.text, include_str!("../../src/cli/page/filter.js"));
    }
}

fn rows(page: &Element) -> Vec<&Element> {
    page.named("tr").into_iter().filter(|row| row.attribute("data-node").is_some()).collect()
}

/// A row's bars, in their order: the words of each, and where it begins and ends.
fn bars(row: &Element) -> Vec<(String, f64, f64)> {
    let percent =
        |bar: &Element, name| bar.attribute(name).unwrap().strip_suffix('%').unwrap().parse::<f64>().unwrap();
    let bars = row.named("rect").into_iter().filter(|bar| bar.is("bar"));
    bars.map(|bar| (bar.text.clone(), percent(bar, "x"), percent(bar, "x") + percent(bar, "width"))).collect()
}

fn row<'a>(page: &'a Element, id: &str) -> &'a Element {
    let mut found = rows(page).into_iter().filter(|row| row.attribute("data-node") == Some(id));
    let row = found.next().unwrap_or_else(|| panic!("no row of {id}"));
    assert!(found.next().is_none(), "two rows of {id}");
    row
}

/// What a row's marks refer to.
fn marks(row: &Element) -> Vec<&str> {
    let marks = row.named("use").into_iter().filter_map(|mark| mark.attribute("href"));
    marks.filter(|mark| *mark != "#grid").collect()
}

/// The number under a heading of the totals.
fn total(page: &Element, name: &str) -> String {
    let totals = page.all().into_iter().find(|element| element.is("totals")).unwrap();
    let tile = totals.children.iter().find(|tile| tile.named("dt")[0].text == name);
    tile.unwrap_or_else(|| panic!("no {name}")).named("dd")[0].text.clone()
}

fn yes(world: &World, line: &str) {
    let said = world.say(line);
    assert_eq!(said.exit, 0, "{line}: {said:?}");
}

fn do_it(world: &World, id: &str, owner: &str, end: &str) {
    let token = world.take(&format!("{id} --owner {owner}")).token;
    yes(world, &format!("{end} --token {token}"));
}

#[test]
fn a_story_is_told() {
    let world = World::new();
    yes(&world, "add design --review --owner lead");
    yes(&world, "add code --after design --owner lead");
    yes(&world, "add docs --owner lead");
    yes(&world, "add idea --owner lead");
    do_it(&world, "design", "alice", "complete design");
    yes(&world, "review design --reject --by carol");
    do_it(&world, "design", "alice", "complete design");
    yes(&world, "review design --accept --by carol");
    // A worker that is killed.
    let mut killed =
        support::Running::spawn(world.claim().args(["run", "docs", "--owner", "bob", "--", "sleep", "60"]));
    support::until("it has docs", || world.say("show docs").out.contains("claimed by bob"));
    killed.end();
    support::until("its claim is over", || world.say("why docs").out.contains("can be taken"));
    do_it(&world, "docs", "carol", "complete docs");
    do_it(&world, "code", "bob", "reject code --reason three-of-80-fail");
    yes(&world, "cancel idea --reason enough");
    world.take("lock --owner alice");
    world.run(&["acquire", "lock", "--owner", "bob", "--force", "alice is away"]);

    let page = page(&world, "");
    assert_eq!(rows(&page).len(), 5);
    let of = |id: &str| bars(row(&page, id)).into_iter().map(|(words, ..)| words).collect::<Vec<_>>();
    assert_eq!(of("design").len(), 2);
    assert!(
        of("docs")[0].starts_with("bob, attempt 1, generation 1")
            && of("docs")[0].ends_with("claim over: its process ended")
    );
    assert!(of("docs")[1].starts_with("carol, attempt 2, generation 2, taken over from bob"));
    assert!(of("code")[0].ends_with("rejected: three-of-80-fail"));
    assert!(of("lock")[0].ends_with("taken away by force: alice is away"));
    assert!(
        of("lock")[1].contains("by force from alice") && of("lock")[1].ends_with(", held: alice is away")
    );
    assert!(of("idea").is_empty());
    for row in rows(&page) {
        let bars = bars(row);
        assert!(bars.iter().all(|(_, start, end)| *start >= 0.0 && end <= &100.5 && start < end), "{bars:?}");
        // To within the width that keeps a short one visible.
        assert!(bars.windows(2).all(|two| two[0].1 <= two[1].1 && two[0].2 <= two[1].1 + 0.5), "{bars:?}");
    }
    assert_eq!(marks(row(&page, "design")), ["#m-done", "#m-done", "#m-no", "#m-yes"]);
    assert_eq!(marks(row(&page, "docs")), ["#m-over", "#m-take", "#m-done"]);
    assert_eq!(marks(row(&page, "code")), ["#m-bad"]);
    assert_eq!(marks(row(&page, "lock")), ["#m-force"]);
    assert_eq!(marks(row(&page, "idea")), ["#m-off"]);
    let classes = |id: &str| {
        let bars = row(&page, id).named("rect").into_iter().filter(|bar| bar.is("bar"));
        bars.map(|bar| bar.attribute("class").unwrap().split(' ').nth(1).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(classes("design"), ["o0", "o0"], "an owner's colour is the same everywhere");
    assert_eq!(
        (classes("docs"), classes("code")),
        (vec!["o1".to_owned(), "o2".to_owned()], vec!["o1".to_owned()])
    );
    for (name, count) in [
        ("nodes", "5"),
        ("done", "2"),
        ("failed", "1"),
        ("running", "1"),
        ("cancelled", "1"),
        ("waiting", "0"),
    ] {
        assert_eq!(total(&page, name), count, "{name}");
    }
    assert!(!total(&page, "median time to finish").is_empty() && !total(&page, "longest").is_empty());
    let wrong = page.all().into_iter().find(|element| element.is("wrong")).unwrap();
    let wrong: Vec<&str> =
        wrong.named("tr").into_iter().skip(1).map(|row| row.children[1].text.as_str()).collect();
    assert_eq!(wrong, ["lock", "code", "docs"], "the newest first");
}

#[test]
fn whatever_people_write_is_text() {
    let world = World::new();
    for (n, text) in HOSTILE.iter().enumerate() {
        let text = text.replace('\0', "");
        let (id, owner) = (format!("n{n} {text}"), format!("o{n} {text}"));
        let run =
            |arguments: &[&str]| said(world.claim().args(arguments).args(["--owner", &owner, "--json"]));
        assert_eq!(run(&["add", &id, "--title", &text, "--review"]).exit, 0);
        let taken: Value = run(&["acquire", &id]).expect(0);
        let token = taken["token"].as_str().unwrap();
        assert_eq!(run(&["complete", &id, "--token", token]).exit, 0);
        assert_eq!(run(&["review", &id, "--reject", "--by", &text, "--note", &text]).exit, 0);
        let taken: Value = run(&["acquire", &id]).expect(0);
        assert_eq!(
            run(&["reject", &id, "--token", taken["token"].as_str().unwrap(), "--reason", &text]).exit,
            0
        );
    }
    let page = page(&world, "");
    assert_eq!(rows(&page).len(), HOSTILE.len());
    let text = fs::read_to_string(world.root.join("page.html")).unwrap();
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "a terminal that shows it is safe too");
    assert!(!text.contains('\u{202e}') && text.matches("<script").count() == 1);
    for (n, hostile) in HOSTILE.iter().enumerate().filter(|(n, _)| *n != 5) {
        let row = row(&page, &format!("n{n} {hostile}"));
        assert!(
            row.text.contains(&format!("o{n} {hostile}")) && row.text.contains(&format!(": {hostile}")),
            "{}",
            row.text
        );
    }
}

#[test]
fn nothing_but_the_page_is_written() {
    let world = World::new();
    do_it(&world, "n", "alice", "complete n");
    fs::write(world.root.join("page.html"), "what was there").unwrap();
    let page = world.root.join("page.html").display().to_string();
    let others = || world.snapshot().into_iter().filter(|line| !line.starts_with(&page)).collect::<Vec<_>>();
    let before = others();
    let said = world.json("report --html page.html");
    let answer: Value = said.expect(0);
    let bytes = fs::metadata(&page).unwrap().len();
    assert_eq!(
        (&answer["file"], &answer["nodes"], &answer["rows"]),
        (&json!("page.html"), &json!(1), &json!(1))
    );
    assert_eq!(answer["bytes"], bytes);
    let said = world.say("report --html -");
    assert!(said.out.starts_with("<!DOCTYPE html>") && said.err.starts_with("WROTE - nodes=1"), "{said:?}");
    parse(&said.out);
    assert_eq!(others(), before);
}

#[test]
fn nothing_that_is_no_regular_file_is_written_over() {
    let world = World::new();
    world.take("n");
    let target = world.root.join("precious");
    fs::write(&target, "kept").unwrap();
    symlink(&target, world.root.join("link")).unwrap();
    symlink(world.root.join("nothing"), world.root.join("dangling")).unwrap();
    fs::create_dir(world.root.join("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(world.root.join("pipe")).status().unwrap().success());
    let before = world.snapshot();
    for name in ["link", "dangling", "folder", "pipe", ".", "/dev/null"] {
        world.refused(&format!("report --html {name}"), 2, "USAGE");
    }
    world.refused("report --html -", 2, "USAGE"); // and --json
    assert_eq!(world.say("report").exit, 2);
    assert_eq!(world.json("report --html none/page.html").exit, 6);
    assert_eq!(world.say("report --html page.html --since soon").exit, 2);
    assert_eq!(world.snapshot(), before);
}

#[test]
fn nothing_is_told_where_nothing_happened() {
    let world = World::new();
    let empty = page(&world, "");
    assert!(rows(&empty).is_empty() && empty.text.contains("Nothing has happened"));
    assert!(!world.dir().exists(), "looking makes no directory");
    do_it(&world, "n", "alice", "complete n");
    world.take("@s/m --owner bob");
    let since = page(&world, "--since 9000-01-01T00:00:00Z");
    assert!(rows(&since).is_empty() || rows(&since)[0].attribute("data-node") == Some("@s/m"));
    assert_eq!(rows(&page(&world, "--since 1h")).len(), 2);
    assert_eq!(rows(&page(&world, "--scope s"))[0].attribute("data-node"), Some("@s/m"));
}

#[test]
fn of_too_many_nodes_those_that_matter_have_rows() {
    let world = World::new();
    do_it(&world, "broken", "alice", "reject broken");
    let event = |n: usize, event: &str, version: u64| {
        let (minute, state) = (n % 60, if version == 1 { "claimed" } else { "done" });
        json!({"at": format!("2099-01-01T{:02}:{minute:02}:0{version}Z", n / 300), "event": event, "id": format!("n{n}"),
            "state": state, "generation": 1, "attempt": 1, "version": version, "by": format!("o{}", n % 60)})
    };
    let lines = (0..5_000).flat_map(|n| [event(n, "claimed", 1), event(n, "completed", 2)]);
    let lines: String = lines.map(|line| format!("\n{line}\n")).collect();
    fs::write(world.dir().join(".store/journal/2099-01-01.jsonl"), lines).unwrap();
    let page = page(&world, "");
    assert_eq!((rows(&page).len(), total(&page, "nodes")), (1_000, "5001".to_owned()));
    assert!(page.text.contains("1000 of 5001 nodes"));
    row(&page, "broken");
    row(&page, "n4999");
    assert!(page.text.contains("and 21 more"), "the legend ends somewhere");
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_told() {
    let world = World::new();
    world.take("good");
    fs::write(world.record("bad"), "{").unwrap();
    let said = world.json("report --html page.html");
    assert_eq!(said.expect::<Value>(6)["code"], "RECORD_UNREADABLE");
    assert!(said.err.contains("bad.claim"), "{said:?}");
    let page = parse(&fs::read_to_string(world.root.join("page.html")).unwrap());
    assert_eq!(rows(&page).len(), 1);
}

/// Without the journal the records still tell whose attempts there were, and how each ended.
#[test]
fn records_alone_tell_what_they_keep() {
    let world = World::new();
    yes(&world, "add t --max-attempts 3 --owner lead");
    do_it(&world, "t", "alice", "retry t --reason flaky");
    world.edit("t", |json| json["not_before"] = Value::Null);
    do_it(&world, "t", "bob", "complete t");
    world.take("held --owner carol");
    fs::remove_dir_all(world.dir().join(".store/journal")).unwrap();
    let page = page(&world, "");
    let words: Vec<String> = bars(row(&page, "t")).into_iter().map(|(words, ..)| words).collect();
    assert!(words[0].starts_with("alice, attempt 1") && words[0].ends_with(": flaky"), "{words:?}");
    assert!(words[1].starts_with("bob, attempt 2") && words[1].ends_with("completed"), "{words:?}");
    assert!(bars(row(&page, "held"))[0].0.starts_with("carol, attempt 1, generation 1"));
}

#[test]
fn a_reader_that_has_seen_enough_ends_no_page_with_an_error() {
    let world = World::new();
    world.say("add t");
    for line in ["report --html -", "list", "list --json", "show t", "graph", "log"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = world.claim();
        command.args(line.split(' ')).stdout(writer).stderr(std::process::Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
    }
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    assert_eq!(said(world.claim().args(["report", "--html", "-"]).stdout(full)).exit, 6);
}
