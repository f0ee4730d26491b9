//! Text made to fit the board: harmless, and cut where it is too wide.

use claimdir::time::human;
use ratatui::style::Style;
use ratatui::text::Span;
use serde_json::Value;

use crate::cli::text::harmless;

/// How many columns harmless text takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// `text`, harmless, in at most `most` columns; what was cut off is told by `…`.
pub(crate) fn fit(text: &str, most: usize) -> String {
    // So much text fills any terminal, and a long one need not be gone through.
    let end = text.char_indices().nth(most.saturating_mul(4)).map_or(text.len(), |(at, _)| at);
    let beginning = text.get(..end).unwrap_or_default();
    let safe = harmless(beginning);
    if beginning.len() == text.len() && width(&safe) <= most {
        return safe.into_owned();
    }
    let Some(room) = most.checked_sub(1) else { return String::new() };
    let mut cut = String::new();
    let mut used = 0;
    for grapheme in Span::raw(safe.as_ref()).styled_graphemes(Style::new()) {
        used += width(grapheme.symbol);
        if used > room {
            break;
        }
        cut.push_str(grapheme.symbol);
    }
    cut.push('…');
    cut
}

/// `text`, harmless, as lines of at most `most` columns, broken between words where that leaves no line half empty.
pub(crate) fn wrapped(text: &str, most: usize) -> Vec<String> {
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for grapheme in Span::raw(harmless(text).as_ref()).styled_graphemes(Style::new()) {
        let columns = width(grapheme.symbol);
        if used + columns > most && used > 0 {
            let space = line.rfind(' ').map(|at| at + 1).filter(|at| *at > line.len() / 2);
            let rest = line.split_off(space.unwrap_or(line.len()));
            used = width(&rest);
            lines.push(std::mem::replace(&mut line, rest));
        }
        line.push_str(grapheme.symbol);
        used += columns;
    }
    lines.push(line);
    lines
}

/// A time span in few columns, to the second: `21s`, `4m10s`.
pub(crate) fn span(ms: i64) -> String {
    // A part of a second counts as one, so that nothing is told to be over before it is.
    human(ms.saturating_add(999) / 1000 * 1000).replace("0ms", "0s")
}

/// A JSON value in few columns: the fields of an object as `name=value`.
pub(crate) fn brief(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| match value {
                Value::String(text) => format!("{name}={text}"),
                value => format!("{name}={value}"),
            };
            fields.iter().map(field).collect::<Vec<_>>().join(" ")
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_fits_by_columns_and_is_harmless() {
        assert_eq!(fit("parser", 6), "parser");
        assert_eq!(fit("parser", 5), "pars…");
        assert_eq!(fit("字字字", 4), "字…", "half a wide character is none");
        assert_eq!(fit("a\u{1b}[2J", 20), r"a\u{1b}[2J");
        assert_eq!((fit("ab", 1), fit("ab", 0)), ("…".to_owned(), String::new()));
        assert_eq!(width(&fit(&"字".repeat(100_000), 20)), 19);
        assert_eq!(wrapped("字字a\nb", 4), ["字字", r"a\nb"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("waits for it", 10), ["waits for ", "it"]);
        assert_eq!(wrapped("a bbbbbbbbb", 6), ["a bbbb", "bbbbb"]);
    }

    #[test]
    fn values_and_spans_are_brief() {
        assert_eq!(brief(&serde_json::json!({"files": 12, "at": "b.rs"})), "files=12 at=b.rs");
        assert_eq!(brief(&serde_json::json!([1, 2])), "[1,2]");
        assert_eq!([0, 1, 1000, 1001, 250_000].map(span), ["0s", "1s", "1s", "2s", "4m10s"]);
    }
}
