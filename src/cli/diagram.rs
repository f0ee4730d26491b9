//! Nodes and what they wait for, as text that Mermaid or Graphviz draws. Names of the drawing's own stand for ids, which
//! are told in labels only: no id can be a keyword or end a statement.

use std::fmt::Write;

use super::text::harmless;

/// A node to draw. Texts are as recorded.
pub(crate) struct Drawn<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: Option<&'a str>,
    pub(crate) state: &'static str,
}

/// How each state is filled and framed; all others are grey.
const COLOURS: [(&str, &str, &str); 8] = [
    ("ready", "#d7f0d7", "#2f7d32"),
    ("waiting", "#fff4cc", "#a67c00"),
    ("claimed", "#d6e6fa", "#1f5fa8"),
    ("blocked", "#fbdcc8", "#b3541e"),
    ("done", "#e8e8e8", "#6b6b6b"),
    ("failed", "#f8d0d0", "#a02020"),
    ("cancelled", "#efe3f5", "#6d3f8a"),
    ("expired", "#f3d9e6", "#96386a"),
];
const GREY: (&str, &str) = ("#ffffff", "#6b6b6b");

fn colours(state: &str) -> (&'static str, &'static str) {
    COLOURS.iter().find(|(of, ..)| *of == state).map_or(GREY, |(_, fill, frame)| (fill, frame))
}

/// A Mermaid flowchart. An edge, between places in `boxes`, goes from what must be done first to what waits for it.
pub(crate) fn mermaid(boxes: &[Drawn<'_>], edges: &[(usize, usize)]) -> Vec<String> {
    let mut lines = vec!["flowchart TD".to_owned()];
    for (at, it) in boxes.iter().enumerate() {
        let title = it.title.map(|title| format!("<br/>{}", in_mermaid(title))).unwrap_or_default();
        lines.push(format!("    n{at}[\"{}{title}\"]:::{}", in_mermaid(it.id), it.state));
    }
    lines.extend(edges.iter().map(|(from, to)| format!("    n{from} --> n{to}")));
    for state in states(boxes) {
        let (fill, frame) = colours(state);
        lines.push(format!("    classDef {state} fill:{fill},stroke:{frame},color:#000000"));
    }
    lines
}

/// The same as a Graphviz digraph.
pub(crate) fn dot(boxes: &[Drawn<'_>], edges: &[(usize, usize)]) -> Vec<String> {
    let mut lines = vec!["digraph claims {".to_owned(), "    node [shape=box, style=filled];".to_owned()];
    for (at, it) in boxes.iter().enumerate() {
        let title = it.title.map(|title| format!("\\n{}", in_dot(title))).unwrap_or_default();
        let (fill, frame) = colours(it.state);
        let (label, state) = (in_dot(it.id), it.state);
        lines.push(format!(
            "    n{at} [label=\"{label}{title}\", class=\"{state}\", fillcolor=\"{fill}\", color=\"{frame}\"];"
        ));
    }
    lines.extend(edges.iter().map(|(from, to)| format!("    n{from} -> n{to};")));
    lines.push("}".to_owned());
    lines
}

/// The states that there are, each once.
fn states(boxes: &[Drawn<'_>]) -> Vec<&'static str> {
    let mut states: Vec<_> = boxes.iter().map(|it| it.state).collect();
    states.sort_unstable();
    states.dedup();
    states
}

/// A text within a quoted label. What means something to Mermaid, or to the Markdown and the HTML that it takes labels for,
/// is written as a character code.
fn in_mermaid(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut is_number = true;
    for (at, c) in harmless(text).char_indices() {
        // A list would begin so.
        let begins_list = (at == 0 && matches!(c, '-' | '+')) || (at > 0 && is_number && c == '.');
        let is_plain = !c.is_ascii() || c.is_ascii_alphanumeric() || " -+.,:/@=".contains(c);
        is_number &= c.is_ascii_digit();
        if is_plain && !begins_list {
            written.push(c);
        } else {
            let _ = write!(written, "#{};", u32::from(c));
        }
    }
    written
}

/// A text within a quoted label, where a backslash and an ampersand begin something.
fn in_dot(text: &str) -> String {
    harmless(text).replace('\\', r"\\").replace('"', "\\\"").replace('&', "&amp;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_gets_out_of_its_label() {
        for (text, mermaid, dot) in [
            ("TK-1", "TK-1", "TK-1"),
            ("end", "end", "end"),
            ("a\"b]", "a#34;b#93;", "a\\\"b]"),
            ("a\\", "a#92;", r"a\\"),
            ("a\nb", "a#92;nb", r"a\\nb"),
            ("#35;&lt;", "#35;35#59;#38;lt#59;", "#35;&amp;lt;"),
            ("<b>`x`</b>", "#60;b#62;#96;x#96;#60;/b#62;", "<b>`x`</b>"),
            ("1. 字 — é", "1#46; 字 — é", "1. 字 — é"),
            ("- x", "#45; x", "- x"),
            ("%%{init}", "#37;#37;#123;init#125;", "%%{init}"),
        ] {
            assert_eq!((in_mermaid(text).as_str(), in_dot(text).as_str()), (mermaid, dot), "{text:?}");
        }
    }
}
