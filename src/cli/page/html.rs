//! The page. Text becomes markup in the templates' hands only, which escape it.

use claimdir::time::{human, rfc3339_seconds};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::collections::{HashMap, HashSet};

use super::axis::Axis;
use super::story::{Bar, How, Row, Story};
use super::totals::{Owner, Totals, state_name};

const STYLE: &str = include_str!("style.css");
const FILTER: &str = include_str!("filter.js");

/// How many nodes have a row.
const ROWS: usize = 1_000;
/// How many bars a row has: the newest.
const BARS: usize = 100;
/// How many failures are listed: the newest.
const FAILURES: usize = 200;
/// How many owners the legend names: those who claimed first.
const OWNERS: usize = 40;

/// A row's middle, and half a bar's height.
const MIDDLE: i64 = 14;
const HALF: i64 = 7;

/// The first owners' colours, which differ in brightness too and show on white and on black.
const COLOURS: [&str; 10] = [
    "#3b82d0", "#e08214", "#2a9d6f", "#b35dbf", "#c9a400", "#d1495b", "#17a2b8", "#8c6d4f", "#7a78e0",
    "#7aa32b",
];

/// The rows that are shown, and in which colour whose claims are.
struct Chart<'a> {
    axis: Axis,
    now_ms: i64,
    rows: Vec<&'a Row>,
    owners: HashMap<&'a str, usize>,
}

/// The whole page, and how many rows it has. `nonce` is what nobody knew who wrote something that it tells.
pub(crate) fn page(story: &Story, nonce: u128) -> (String, usize) {
    let totals = Totals::of(story);
    let owners = totals.owners.iter().enumerate().map(|(place, owner)| (owner.name, place)).collect();
    let rows = chosen(story);
    let chart = Chart { axis: Axis::of(story), now_ms: story.now_ms, rows, owners };
    let nonce = format!("{nonce:032x}");
    let policy = format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                title { "claim report" }
                style { (PreEscaped(STYLE)) (PreEscaped(colours(chart.owners.len()))) }
            }
            body {
                (head(story, &chart))
                (totals_of(story, &totals))
                @if !story.rows.is_empty() {
                    (timeline(story, &chart, &totals))
                    (failures(&totals))
                }
                footer.soft {
                    p { "From the records and, for what they don't keep, the journal. All times are UTC. "
                        "The journal is for people: an event may be missing, and what was pruned is gone." }
                }
                @if !story.rows.is_empty() {
                    script nonce=(nonce) { (PreEscaped(FILTER)) }
                }
            }
        }
    };
    (page.into_string(), chart.rows.len())
}

/// Of too many rows: what failed and what goes on, then what something happened to last.
fn chosen(story: &Story) -> Vec<&Row> {
    if story.rows.len() <= ROWS {
        return story.rows.iter().collect();
    }
    let counts = |row: &Row| matches!(row.state, "failed" | "expired" | "claimed");
    let mut order: Vec<usize> = (0..story.rows.len()).collect();
    order.sort_by_key(|at| {
        story.rows.get(*at).map(|row| std::cmp::Reverse((counts(row), row.last_ms(story.now_ms))))
    });
    let shown: HashSet<usize> = order.into_iter().take(ROWS).collect();
    story.rows.iter().enumerate().filter(|(at, _)| shown.contains(at)).map(|(_, row)| row).collect()
}

fn colours(count: usize) -> String {
    let colour = |n: usize| match COLOURS.get(n) {
        Some(colour) => (*colour).to_owned(),
        // By the golden angle: neighbours differ.
        None => format!("hsl({} 55% {}%)", (n * 137 + 20) % 360, 42 + n % 3 * 8),
    };
    (0..count).map(|n| format!(".o{n}{{fill:{}}}", colour(n))).collect()
}

fn time(ms: i64) -> Markup {
    let text = rfc3339_seconds(ms);
    html! { time datetime=(text) { (text.replace('T', " ").trim_end_matches('Z')) } }
}

fn head(story: &Story, chart: &Chart<'_>) -> Markup {
    html! {
        header {
            h1 { "What happened" }
            p.soft { "in " code { (story.place) } }
            p.soft {
                @if story.rows.is_empty() {
                    "Written " (time(story.now_ms)) " UTC"
                } @else {
                    (time(chart.axis.start_ms)) " to " (time(chart.axis.end_ms.min(story.now_ms)))
                    " UTC, written " (time(story.now_ms))
                }
                @if let Some(since) = story.since_ms { "; only what happened since " (time(since)) }
            }
        }
    }
}

fn totals_of(story: &Story, totals: &Totals<'_>) -> Markup {
    if story.rows.is_empty() {
        return html! { p { "Nothing has happened to any node." } };
    }
    html! {
        dl.totals {
            div { dt { "nodes" } dd { (story.rows.len()) } }
            @for (state, count) in &totals.states {
                div { dt { (state_name(state)) } dd class=(if *count > 0 { *state } else { "" }) { (count) } }
            }
            @if let Some(ms) = totals.median_ms {
                div { dt { "median time to finish" } dd { (human(ms)) } }
            }
            @if let Some((ms, row)) = &totals.longest {
                div { dt { "longest" } dd { (human(*ms)) } div.long.id { (clipped(&row.id, 60)) } }
            }
        }
    }
}

/// The beginning of a text.
fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn timeline(story: &Story, chart: &Chart<'_>, totals: &Totals<'_>) -> Markup {
    html! {
        h2 { "Who had what, and when" }
        (marks())
        (legend(&totals.owners))
        @if chart.rows.len() < story.rows.len() {
            p { "These are " (chart.rows.len()) " of " (story.rows.len()) " nodes: all that failed or go on, as far as "
                "there is room, and those to which something happened last. The totals are of all." }
        }
        input #find type="search" hidden placeholder="Only rows with …" aria-label="Only rows with this text";
        table.story {
            thead { tr {
                th.node scope="col" { "node" }
                th.when scope="col" { (ruler(&chart.axis)) }
                th.now scope="col" { "now" }
                th.tries scope="col" { "attempts" }
                th.took scope="col" { "took" }
            } }
            tbody { @for row in &chart.rows { (line(chart, row)) } }
        }
    }
}

/// The marks, drawn once, with what they mean.
fn marks() -> Markup {
    html! {
        svg width="0" height="0" aria-hidden="true" style="position:absolute" {
            defs {
                g #m-done { circle.m-good r="4.5" {} }
                g #m-bad { path.m-bad d="M-4-4 4 4M-4 4 4-4" {} }
                g #m-again { circle.m-warn r="3.8" {} }
                g #m-over { path.m-warn d="M0-5 5 0 0 5-5 0z" {} }
                g #m-take { path.m-take d="M-4-7 5 0-4 7z" {} }
                g #m-force { path.m-force d="M-4-7 5 0-4 7z" {} }
                g #m-off { rect.m-warn x="-3.5" y="-3.5" width="7" height="7" {} }
                g #m-yes { path.m-yes d="M6 0 9 4 15-5" {} }
                g #m-no { circle.m-no r="5" {} path.m-no d="M-3.5 3.5 3.5-3.5" {} }
            }
        }
        ul.legend aria-label="marks" {
            @for (mark, means) in [
                ("m-done", "done"), ("m-bad", "failed, rejected, expired"), ("m-again", "given back for another attempt"),
                ("m-over", "claim over: lease or process ended"), ("m-take", "taken over"), ("m-force", "taken by force"),
                ("m-off", "cancelled"), ("m-yes", "accepted by a reviewer"), ("m-no", "sent back by a reviewer"),
            ] {
                li { svg width="14" height="14" aria-hidden="true" { use href=(format!("#{mark}")) x=(if mark == "m-yes" { "-3" } else { "7" }) y="7" {} } (means) }
            }
            li { svg width="26" height="14" aria-hidden="true" { line.wait x1="0" x2="26" y1="7" y2="7" {} } "nobody had it" }
            li { svg width="26" height="14" aria-hidden="true" { rect.bar.held.o0 x="1" y="1" width="24" height="12" rx="2" {} } "still held" }
        }
    }
}

fn legend(owners: &[Owner<'_>]) -> Markup {
    html! {
        ul.legend aria-label="owners" {
            @for (n, owner) in owners.iter().take(OWNERS).enumerate() {
                li {
                    svg width="14" height="14" aria-hidden="true" { rect class=(format!("o{n}")) width="14" height="14" rx="3" {} }
                    span { b { (clipped(owner.name, 60)) } " "
                        span.soft { (owner.claims) (if owner.claims == 1 { " claim, " } else { " claims, " }) (human(owner.held_ms)) } }
                }
            }
            @if owners.len() > OWNERS { li.soft { "and " (owners.len() - OWNERS) " more" } }
        }
    }
}

fn percent(place: f64) -> String {
    format!("{place:.2}%")
}

/// The marks of time, and the grid that each row takes over.
fn ruler(axis: &Axis) -> Markup {
    let marks = axis.marks();
    html! {
        svg height="16" role="img" aria-label="time" {
            defs { g #grid.grid { @for (at, _) in &marks {
                line x1=(percent(*at)) x2=(percent(*at)) y1="-9" y2="400" {}
            } } }
            @for (n, (at, name)) in marks.iter().enumerate() {
                text class=(if n % 2 == 1 { "tick odd" } else { "tick" }) x=(percent(*at)) y="12"
                    text-anchor=(if *at > 92.0 { "end" } else if *at < 8.0 { "start" } else { "middle" }) { (name) }
            }
        }
    }
}

fn line(chart: &Chart<'_>, row: &Row) -> Markup {
    let from = row.bars.len().saturating_sub(BARS);
    html! {
        tr data-node=(row.id) data-state=(row.state) {
            th.node scope="row" {
                details {
                    summary { span.id { (row.id) } }
                    ul { (history(chart, row, from)) }
                }
                @if let Some(title) = &row.title { div.why { (title) } }
                @if !row.after.is_empty() { div.why { "after " (row.after.join(", ")) } }
            }
            td.when { (strip(chart, row, from)) }
            td.now {
                span class=(row.state) { (state_name(row.state)) }
                @if let Some(reason) = &row.reason { div.why.short { (clipped(reason, 200)) } }
            }
            td.tries { (row.attempts) }
            td.took { @if let Some(ms) = row.took_ms() { (human(ms)) } @else { "–" } }
        }
    }
}

/// In words, for whoever wants to know more.
fn history(chart: &Chart<'_>, row: &Row, from: usize) -> Markup {
    html! {
        @if let Some(added) = row.added_ms { li { "submitted " (time(added)) } }
        @if from > 0 { li { (from) " earlier claims are left out" } }
        @for bar in row.bars.iter().skip(from) { li { (in_words(chart, bar)) } }
        @for review in &row.reviews {
            li {
                (if review.accepted { "accepted" } else { "sent back" }) " by " (review.by) " " (time(review.at_ms))
                @if let Some(note) = &review.note { ": " (note) }
            }
        }
    }
}

fn in_words(chart: &Chart<'_>, bar: &Bar) -> String {
    let length = human(bar.end_ms.unwrap_or(chart.now_ms).saturating_sub(bar.start_ms));
    let reason = bar.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let from = bar.from.as_ref().map(|from| {
        let how = if bar.forced { "by force from" } else { "taken over from" };
        format!(", {how} {from}")
    });
    format!(
        "{}, attempt {}, generation {}{}, {} for {length}, {}{reason}",
        bar.owner,
        bar.attempt,
        bar.generation,
        from.unwrap_or_default(),
        rfc3339_seconds(bar.start_ms).replace('T', " ").trim_end_matches('Z'),
        bar.how.words()
    )
}

/// A row's line of time.
fn strip(chart: &Chart<'_>, row: &Row, from: usize) -> Markup {
    let axis = &chart.axis;
    let start = percent(axis.place(row.first_ms()));
    let end = row.ended_ms.filter(|_| row.state != "claimed").unwrap_or(chart.now_ms);
    let last = if row.state == "gone" { row.last_ms(chart.now_ms) } else { end };
    let bars = || row.bars.iter().skip(from);
    html! {
        svg height=(2 * MIDDLE) role="img" aria-label=(format!("{} claims", row.bars.len())) {
            use href="#grid" {}
            line.wait x1=(start) x2=(percent(axis.place(last))) y1=(MIDDLE) y2=(MIDDLE) {}
            @for bar in bars() { (drawn(chart, bar)) }
            @for bar in bars() {
                @if bar.from.is_some() || bar.forced {
                    (mark(if bar.forced { "m-force" } else { "m-take" }, axis.place(bar.start_ms)))
                }
                @if let (Some(name), Some(end)) = (mark_of(bar.how), bar.end_ms) { (mark(name, axis.place(end))) }
            }
            @if let (true, Some(at)) = (row.bars.last().is_none_or(|bar| mark_of(bar.how).is_none()), row.ended_ms) {
                (mark(if row.state == "cancelled" { "m-off" } else { "m-bad" }, axis.place(at)))
            }
            @for review in &row.reviews {
                (mark(if review.accepted { "m-yes" } else { "m-no" }, axis.place(review.at_ms)))
            }
        }
    }
}

fn drawn(chart: &Chart<'_>, bar: &Bar) -> Markup {
    let start = chart.axis.place(bar.start_ms);
    let width = chart.axis.place(bar.end_ms.unwrap_or(chart.now_ms)) - start;
    let owner = chart.owners.get(bar.owner.as_str()).copied().unwrap_or_default();
    let class = format!("bar o{owner}{}", if bar.end_ms.is_none() { " held" } else { "" });
    html! {
        rect class=(class) x=(percent(start)) y=(MIDDLE - HALF) width=(percent(width.max(0.4))) height=(2 * HALF) rx="2" {
            title { (in_words(chart, bar)) }
        }
    }
}

fn mark_of(how: How) -> Option<&'static str> {
    match how {
        How::Completed => Some("m-done"),
        How::Retried => Some("m-again"),
        How::Rejected | How::Failed | How::Expired => Some("m-bad"),
        How::Over => Some("m-over"),
        How::Cancelled => Some("m-off"),
        How::Held | How::Released | How::Forced => None,
    }
}

fn mark(name: &str, place: f64) -> Markup {
    html! { use href=(format!("#{name}")) x=(percent(place)) y=(MIDDLE) {} }
}

fn failures(totals: &Totals<'_>) -> Markup {
    if totals.failures.is_empty() {
        return html! { h2 { "What went wrong" } p { "Nothing." } };
    }
    html! {
        h2 { "What went wrong" }
        @if totals.failures.len() > FAILURES {
            p { "The newest " (FAILURES) " of " (totals.failures.len()) "." }
        }
        table.wrong {
            thead { tr { th.at scope="col" { "when" } th.node scope="col" { "node" } th.who scope="col" { "owner, attempt" }
                th.how scope="col" { "how" } th scope="col" { "why" } } }
            tbody { @for (row, bar) in totals.failures.iter().take(FAILURES) { tr {
                td.at { @if let Some(end) = bar.end_ms { (time(end)) } }
                td.id { (row.id) }
                td.who { (bar.owner) ", " (bar.attempt) }
                td.how { (bar.how.words()) }
                td.long-text { @if let Some(reason) = &bar.reason { (reason) } }
            } } }
        }
    }
}
