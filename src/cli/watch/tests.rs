//! The board from real records, drawn on a terminal that is none.

use std::sync::Arc;
use std::time::Duration;

use claimdir::domain::{Submission, Task};
use claimdir::host::{Host, Os};
use claimdir::store::Memory;
use claimdir::time::parse_when;
use claimdir::{Acquire, Blocking, Directory, Lease, Name, NodeId, Rate, Renewal, Resources, Text};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use serde_json::json;

use super::gather::{Asked, gather};
use super::inside::Detail;
use super::keys::Key;
use super::model::Board;
use super::past::Past;
use super::reader::nap;
use super::row::Row;
use super::state::{Act, Pane, Ui};
use super::view;
use crate::cli::args::{Filter, StateFilter};

fn id(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn named(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn task() -> Submission {
    Submission::by("lead")
}

/// A directory with something of everything, and the leases that keep it so.
struct Scene {
    directory: Directory,
    leases: Vec<Lease>,
}

impl Scene {
    fn new() -> Scene {
        let host: Arc<dyn Host> = Arc::new(Os::new());
        let directory = Directory::over(Arc::new(Memory::default()), host);
        Scene { directory, leases: Vec::new() }
    }

    fn add(&self, name: &str, task: Submission) {
        self.directory.submit(&id(name), &task).unwrap().unwrap();
    }

    fn take(&mut self, name: &str, owner: &str, lease: u64) -> &Lease {
        let request = Acquire::by(owner).engine(named("claude")).lease(Duration::from_secs(lease));
        let lease = self.directory.try_acquire(&id(name), &request).unwrap().unwrap();
        self.leases.push(lease);
        self.leases.last().unwrap()
    }

    fn full() -> Scene {
        let mut scene = Scene::new();
        let directory = scene.directory.clone();
        directory.set_pool(&named("gpu"), 1).unwrap();
        directory.set_quota(&named("api"), Rate::new(5, Duration::from_secs(3600)).unwrap()).unwrap();
        let with_pool = |name| {
            let mut with = Resources::default();
            with.add_pool(named(name));
            task().queue(named("ml")).with(&with)
        };
        scene.add("design", task().title("the new format").unwrap().project(named("parser")).review());
        scene.add("code", task().after(id("design")));
        scene.add("train", with_pool("gpu").max_attempts(3).unwrap());
        scene.add("eval", with_pool("gpu"));
        scene.add("report", task().not_before(parse_when("2h").unwrap()));
        scene.add("held", task());
        scene.add("bad", task().queue(named("ml")));
        scene.add("page", task().queue(named("pages")));
        let block =
            Blocking { by: "ops".into(), reason: Text::new("a reason", "lawyers").unwrap(), until: None };
        directory.block(&id("held"), &block).unwrap().unwrap();
        directory
            .pause_queue(&named("pages"), None, "ops", Some(&Text::new("a reason", "a deploy").unwrap()))
            .unwrap();
        let lease = scene.take("design", "alice", 600);
        let progress = Renewal { progress: Some(json!({"files": 12})), ..Renewal::default() };
        directory.renew(&id("design"), lease.token(), &progress).unwrap().unwrap();
        scene.take("train", "bob", 7200);
        scene.take("company:acme", "carol", 3600);
        let lease = scene.take("bad", "bob", 60);
        directory
            .reject(&id("bad"), lease.token(), Some(&Text::new("a reason", "out of memory").unwrap()))
            .unwrap()
            .unwrap();
        scene
    }

    fn board(&self) -> Board {
        let mut board = gather(&self.directory, &Asked::default()).unwrap();
        board.events = Past::of(&self.directory).newest(&Asked::default());
        board
    }

    fn ui(&self) -> Ui {
        let mut ui = Ui::new(true);
        ui.show(self.board());
        ui
    }
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

fn row<'a>(board: &'a Board, name: &str) -> &'a Row {
    board.rows.iter().find(|row| row.id == name).unwrap()
}

fn drawn(ui: &mut Ui, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal
        .draw(|frame| {
            let area = frame.area();
            view::draw(ui, frame.buffer_mut(), area);
        })
        .unwrap();
    view::plain(terminal.backend().buffer())
}

/// The line that has all of this.
#[track_caller]
fn line<'a>(frame: &'a [String], parts: &[&str]) -> &'a str {
    let found = frame.iter().find(|line| parts.iter().all(|part| line.contains(part)));
    found.unwrap_or_else(|| panic!("{parts:?} is not in\n{}", frame.join("\n")))
}

fn press(ui: &mut Ui, keys: &str) {
    keys.chars().for_each(|c| drop(ui.press(Key::Char(c))));
}

#[test]
fn the_model_says_who_holds_what_and_what_waits_for_what() {
    let board = Scene::full().board();
    let design = row(&board, "design");
    assert_eq!((design.state, design.owner.as_deref()), (StateFilter::Claimed, Some("alice")));
    assert!((590_000..=600_000).contains(&design.left_ms.unwrap()));
    assert_eq!((design.generation, design.attempts().as_str()), (1, "1/5"));
    assert_eq!(design.progress, Some(json!({"files": 12})));
    assert_eq!(row(&board, "train").attempts(), "1/3");
    assert_eq!(row(&board, "company:acme").attempts(), "1", "a bare key has no limit");
    for (name, state, why) in [
        ("code", StateFilter::Waiting, "after design, which is claimed"),
        ("eval", StateFilter::Waiting, "pool gpu 1/1: train by bob"),
        ("report", StateFilter::Waiting, "delayed"),
        ("held", StateFilter::Blocked, "blocked by ops: lawyers"),
        ("bad", StateFilter::Failed, "out of memory"),
    ] {
        let row = row(&board, name);
        assert_eq!((row.state, row.why.as_deref()), (state, Some(why)), "{name}");
    }
    assert!(row(&board, "eval").left_ms.unwrap() > 7_000_000, "no longer than the slot's holder may");
    let queue = |name| board.queues.iter().find(|queue| queue.name.as_deref() == name).unwrap();
    let ml = queue(Some("ml"));
    let counts = [StateFilter::Claimed, StateFilter::Waiting, StateFilter::Failed].map(|of| ml.counts.of(of));
    assert_eq!((counts, ml.counts.of(StateFilter::Ready)), ([1, 1, 1], 0));
    assert_eq!(queue(Some("pages")).paused.as_ref().unwrap().by, "ops");
    assert_eq!(queue(None).counts.of(StateFilter::Claimed), 1, "bare keys");
    let json = serde_json::Value::Object(board.json());
    assert_eq!(
        (&json["states"]["claimed"], &json["pools"][0]["used"][0]["node"]),
        (&json!(3), &json!("train"))
    );
    assert!(!json.to_string().contains("token"), "tokens are not shown");
}

#[test]
fn only_what_is_asked_for_is_on_the_board() {
    let scene = Scene::full();
    let ids = |asked| {
        gather(&scene.directory, &asked).unwrap().rows.iter().map(|row| row.id.clone()).collect::<Vec<_>>()
    };
    let which = |queue: &[&str], project: &[&str]| Asked {
        filter: Filter { queues: texts(queue), projects: texts(project), ..Filter::default() },
        ..Asked::default()
    };
    assert_eq!(ids(which(&["ml"], &[])), ["bad", "eval", "train"]);
    assert_eq!(ids(which(&[], &["parser"])), ["design"]);
    let failed = Filter { states: vec![StateFilter::Failed, StateFilter::Blocked], ..Filter::default() };
    assert_eq!(ids(Asked { filter: failed, ..Asked::default() }), ["bad", "held"]);
    assert_eq!(ids(Asked { owner: Some("carol".into()), ..Asked::default() }), ["company:acme"]);
    let scope = claimdir::Scope::new("nightly").unwrap();
    scene.add("@nightly/lint", task());
    assert_eq!(ids(Asked { scope: Some(scope), ..Asked::default() }), ["@nightly/lint"]);
}

#[test]
fn a_small_frame_has_all_that_matters() {
    let mut ui = Scene::full().ui();
    let frame = drawn(&mut ui, 80, 24);
    assert_eq!(frame.len(), 24);
    line(&frame, &["9 nodes", "3 claimed", "1 ready", "3 waiting", "1 blocked", "1 failed"]);
    line(&frame, &["design", "alice", "10m", "1/5", "files=12"]);
    line(&frame, &["code", "after design, which is claimed"]);
    line(&frame, &["eval", "pool gpu 1/1: train by bob"]);
    line(&frame, &["held", "blocked by ops: lawyers"]);
    line(&frame, &["bad", "failed: out of memory", "1/5"]);
    line(&frame, &["!pages", "PAUSED", "ago by ops: a dep"]);
    line(&frame, &["!pool gpu", "FULL 1 of 1: train by bob"]);
    line(&frame, &["bad", "rejected", "bob", "out of memory"]);
    line(&frame, &["q quit", "? help", "/ filter"]);
    assert!(line(&frame, &["RUNNING 3"]).starts_with('━'), "it has the focus");
    assert!(
        frame.iter().any(|line| line.starts_with("> design")),
        "a row is chosen, and not by colour alone"
    );
}

#[test]
fn a_wide_frame_has_panes_side_by_side_and_more_columns() {
    let mut ui = Scene::full().ui();
    line(&drawn(&mut ui, 120, 40), &["OWNER", "ENGINE", "LEFT", "GEN", "WHERE", "QUEUE", "PROGRESS"]);
    let frame = drawn(&mut ui, 200, 60);
    line(&frame, &["RUNNING 3", "FAILED 1"]);
    line(&frame, &["train", "bob", "ml"]);
}

#[test]
fn no_size_is_too_small() {
    let mut ui = Scene::full().ui();
    for open in ["", "?", "\n"] {
        match open {
            "\n" => {
                ui.help = None;
                assert!(matches!(ui.press(Key::Enter), Act::LookInto(_)));
            }
            keys => press(&mut ui, keys),
        }
        for columns in (1..30).chain([80, 149, 150, 500]) {
            for rows in (1..12).chain([24, 200]) {
                assert_eq!(drawn(&mut ui, columns, rows).len(), usize::from(rows), "{columns}x{rows}");
            }
        }
    }
    drawn(&mut Ui::new(false), 1, 1);
}

#[test]
fn a_filter_keeps_what_has_its_words() {
    let mut ui = Scene::full().ui();
    press(&mut ui, "/ALI form");
    line(&drawn(&mut ui, 80, 24), &["filter: ALI form_"]);
    ui.press(Key::Enter);
    let frame = drawn(&mut ui, 80, 24);
    line(&frame, &["design", "alice"]);
    line(&frame, &["only “ALI form”"]);
    assert!(!frame.iter().any(|line| line.contains("carol")), "{}", frame.join("\n"));
    line(&frame, &["nothing here fits the filter"]);
    ui.press(Key::Esc);
    line(&drawn(&mut ui, 80, 24), &["company:acme", "carol"]);
}

#[test]
fn the_choice_stays_with_its_node() {
    let mut scene = Scene::full();
    let mut ui = scene.ui();
    press(&mut ui, "j");
    line(&drawn(&mut ui, 80, 24), &["> company:acme"]);
    scene.take("another", "dave", 30);
    ui.show(scene.board());
    line(&drawn(&mut ui, 80, 24), &["> company:acme"]);
    press(&mut ui, "G");
    line(&drawn(&mut ui, 80, 24), &["> train"]);
    press(&mut ui, "g");
    line(&drawn(&mut ui, 80, 24), &["> another"]);
    press(&mut ui, "s");
    scene.take("TK-10", "dave", 30);
    scene.take("TK-2", "dave", 60);
    ui.show(scene.board());
    press(&mut ui, "a");
    let frame = drawn(&mut ui, 80, 24);
    line(&frame, &["| by node"]);
    let at = |name| frame.iter().position(|line| line.contains(name));
    assert!(at("TK-2 ") < at("TK-10 "), "{}", frame.join("\n"));
}

#[test]
fn panes_follow_each_other_and_stand_alone() {
    let mut ui = Scene::full().ui();
    for pane in [Pane::Waiting, Pane::Failed, Pane::Queues, Pane::Events, Pane::Running] {
        ui.press(Key::Tab);
        assert_eq!((ui.focus, ui.alone), (pane, false));
    }
    press(&mut ui, "a");
    let frame = drawn(&mut ui, 80, 24);
    line(&frame, &["ALL NODES 9"]);
    line(&frame, &["page", "ready"]);
    ui.press(Key::Esc);
    assert_eq!((ui.focus, ui.alone), (Pane::Running, false));
    press(&mut ui, "4");
    // The paused queue is first.
    ui.press(Key::Enter);
    let frame = drawn(&mut ui, 80, 24);
    line(&frame, &["ALL NODES 1"]);
    line(&frame, &["page", "ready"]);
}

#[test]
fn what_happened_is_told_the_newest_first() {
    let mut scene = Scene::full();
    let mut ui = scene.ui();
    press(&mut ui, "5");
    let frame = drawn(&mut ui, 80, 24);
    line(&frame, &["> bad", "rejected"]);
    scene.take("page", "dave", 60);
    ui.show(scene.board());
    line(&drawn(&mut ui, 80, 24), &["> page", "claimed", "dave"]);
    press(&mut ui, "j");
    scene.take("code:x", "erin", 60);
    ui.show(scene.board());
    line(&drawn(&mut ui, 80, 40), &["> bad", "rejected"]);
    assert_eq!(ui.press(Key::Enter), Act::LookInto(id("bad")));
    ui.press(Key::Esc);
    press(&mut ui, "/erin");
    ui.press(Key::Enter);
    line(&drawn(&mut ui, 80, 24), &["EVENTS 1"]);
}

#[test]
fn a_node_is_looked_into_and_scrolled() {
    let mut scene = Scene::new();
    let many: Vec<u32> = (0..100).collect();
    scene.add("n", task().input(json!({"list": many})).title("a title").unwrap());
    scene.take("n", "alice", 60);
    let mut ui = scene.ui();
    assert_eq!(ui.press(Key::Enter), Act::LookInto(id("n")));
    line(&drawn(&mut ui, 80, 24), &["reading …"]);
    let mut past = Past::of(&scene.directory);
    past.newest(&Asked::default());
    ui.show_inside(Detail::read(&scene.directory, &id("n"), &past));
    let frame = drawn(&mut ui, 80, 24);
    line(&frame, &["n claimed by alice with claude, ends in"]);
    line(&frame, &["title a title"]);
    line(&frame, &["input {"]);
    line(&frame, &["NODE n", "lines 1 to 20 of 1"]);
    press(&mut ui, "G");
    line(
        &drawn(&mut ui, 80, 24),
        &[&format!("queue={} priority=5 attempts=1/5", Task::default_queue().as_str())],
    );
    line(&drawn(&mut ui, 80, 24), &["claimed n by alice generation=1"]);
    press(&mut ui, "k");
    assert_eq!(ui.press(Key::Esc), Act::LookAway);
    line(&drawn(&mut ui, 80, 24), &["RUNNING 1"]);
}

#[test]
fn a_large_value_is_shown_from_its_beginning() {
    let mut scene = Scene::new();
    let lease = scene.take("n", "alice", 60);
    let (token, text) = (lease.token().clone(), "first\n".to_owned() + &"0123456789".repeat(20_000) + "last");
    scene.directory.complete_from_output(&id("n"), &token, &mut text.as_bytes()).unwrap().unwrap();
    let mut ui = scene.ui();
    press(&mut ui, "a");
    ui.press(Key::Enter);
    ui.show_inside(Detail::read(&scene.directory, &id("n"), &Past::of(&scene.directory)));
    let frame = drawn(&mut ui, 80, 24);
    line(&frame, &["result: the first 65536 of 200010 bytes"]);
    line(&frame, &["    first"]);
    press(&mut ui, "G");
    line(&drawn(&mut ui, 80, 24), &["0123456789"]);
}

#[test]
fn what_users_write_moves_no_cursor_and_wide_letters_keep_columns() {
    let mut scene = Scene::new();
    scene.add("字句", task().title("a\u{1b}[2Jb\u{202e}c").unwrap());
    scene.take("字句", "evil\u{9b}2J\nowner", 60);
    scene.take("plain", "alice", 60);
    let mut ui = scene.ui();
    let frame = drawn(&mut ui, 140, 24);
    line(&frame, &["字句", r"evil\u{9b}2J\nowner", r"a\u{1b}[2Jb\u{202e}c"]);
    let left = |name: &str| {
        let line = line(&frame, &[name, "1m"]);
        super::text::width(&line[..line.find(" 1m").unwrap()])
    };
    assert_eq!(left("字句"), left("plain"), "{}", frame.join("\n"));
}

#[test]
fn empty_panes_say_why_and_trouble_is_told() {
    let mut ui = Ui::new(true);
    line(&drawn(&mut ui, 80, 24), &["reading …"]);
    ui.show(Scene::new().board());
    let frame = drawn(&mut ui, 80, 24);
    for pane in [Pane::Running, Pane::Waiting, Pane::Failed, Pane::Queues, Pane::Events] {
        line(&frame, &[pane.when_empty()]);
    }
    ui.trouble = Some("/x is gone".to_owned());
    line(&drawn(&mut ui, 80, 24), &["! /x is gone"]);
    line(&drawn(&mut ui, 80, 5), &["! /x is gone"]);
}

#[test]
fn time_goes_on_between_two_looks() {
    let mut scene = Scene::new();
    scene.take("n", "alice", 60);
    let mut ui = scene.ui();
    ui.age_ms = 50_500;
    line(&drawn(&mut ui, 80, 24), &[">!n", "10s"]);
    line(&drawn(&mut ui, 80, 24), &["read 51s ago"]);
    ui.age_ms = 60_000;
    line(&drawn(&mut ui, 80, 24), &[">!n", "over"]);
}

#[test]
fn colours_are_left_out_where_nobody_wants_them() {
    let scene = Scene::full();
    for colour in [true, false] {
        let mut ui = scene.ui();
        ui.colour = colour;
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let area = ratatui::layout::Rect::new(0, 0, 80, 24);
        terminal.draw(|frame| view::draw(&mut ui, frame.buffer_mut(), area)).unwrap();
        let has = terminal.backend().buffer().content.iter().any(|cell| cell.fg != Color::Reset);
        assert_eq!(has, colour);
    }
}

#[test]
fn looking_takes_less_than_a_tenth_of_a_processor() {
    let ms = Duration::from_millis;
    assert_eq!(nap(ms(1000), ms(20)), ms(1000));
    assert_eq!(nap(ms(1000), ms(400)), ms(4000));
}

#[test]
fn rows_are_shared_out_by_need() {
    use super::view::shared_out;
    assert_eq!(shared_out(20, &[3, 3, 2], None), [3, 3, 2]);
    assert_eq!(shared_out(10, &[9, 9, 2], Some(1)), [4, 4, 2]);
    assert_eq!(shared_out(4, &[9, 9, 9], Some(2)), [2, 0, 2]);
    assert_eq!([shared_out(1, &[9, 9], Some(1)), shared_out(0, &[9, 9], None)], [[0, 1], [0, 0]]);
}
