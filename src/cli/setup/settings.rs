//! Hooks in Claude Code's settings: JSON in which all else keeps its bytes.
//!
//! What we add goes to the end of where it belongs; taking it out takes the comma before it, too. A container that was
//! there and empty is filled without a space, one that we make ourselves has some before its first content: so it can be
//! told which of them goes with its last content.

use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Value, json};

use super::spans::{Item, parse};
use super::{Edited, Wanted};

const NOT_JSON: &str = "it is not JSON";
const NOT_HOOKS: &str = "its hooks are not as Claude Code has them";

/// An event, and what we have run at it. The command is what tells ours from others.
struct Hook {
    event: &'static str,
    matcher: Option<&'static str>,
    command: &'static str,
}

const HOOKS: [Hook; 2] = [
    Hook {
        event: "PreToolUse",
        matcher: Some("Write|Edit|MultiEdit|NotebookEdit|Bash"),
        command: "claim guard hook claude-code",
    },
    Hook { event: "SessionStart", matcher: None, command: "claim prime --hook claude-code" },
];

impl Hook {
    fn inner(&self) -> Value {
        json!({"type": "command", "command": self.command, "timeout": 5})
    }

    fn group(&self) -> Value {
        match self.matcher {
            Some(matcher) => json!({"matcher": matcher, "hooks": [self.inner()]}),
            None => json!({"hooks": [self.inner()]}),
        }
    }

    /// Does `group` ask of no less than ours does? One that is ours alone is made to.
    fn is_asked_in(&self, group: &Value) -> bool {
        let is_shared = group["hooks"].as_array().is_some_and(|hooks| hooks.len() > 1);
        let matcher = group["matcher"].as_str();
        !is_shared || matches!(matcher, None | Some("" | "*")) || matcher == self.matcher
    }

    fn is_inner(&self, hook: &Value) -> bool {
        let command = hook["command"].as_str();
        command.is_some_and(|command| {
            command == self.command || command.ends_with(&format!("/{}", self.command))
        })
    }
}

/// The settings with our hooks, or without.
pub(super) fn edit(text: Option<&str>, wanted: Wanted) -> Edited {
    let Some(text) = text else {
        return Ok((wanted == Wanted::There).then(new));
    };
    let value: Value = serde_json::from_str(text).map_err(|_| NOT_JSON)?;
    if !value.is_object() {
        return Err("it is not a JSON object");
    }
    if wanted == Wanted::Gone && text == new() {
        return Ok(None);
    }
    let mut text = text.to_owned();
    match wanted {
        Wanted::There => HOOKS.iter().try_for_each(|hook| put(&mut text, hook))?,
        Wanted::Gone => HOOKS.iter().rev().try_for_each(|hook| take(&mut text, hook))?,
    }
    // An edit that would not be JSON is none.
    serde_json::from_str::<Value>(&text).map_err(|_| NOT_JSON)?;
    Ok(Some(text))
}

/// A file that is all ours.
fn new() -> String {
    let events = HOOKS.iter().map(|hook| (hook.event.to_owned(), json!([hook.group()])));
    let hooks: Value = Value::Object(events.collect());
    format!("{}\n", Style { unit: "  ".to_owned(), line_end: "\n" }.lines(&json!({"hooks": hooks}), 0))
}

/// How the text is written.
struct Style {
    unit: String,
    line_end: &'static str,
}

impl Style {
    fn of(text: &str) -> Style {
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let second = text.lines().nth(1).unwrap_or_default();
        let unit: String = second.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
        Style { unit: if unit.is_empty() { "  ".to_owned() } else { unit }, line_end }
    }

    /// `value` on lines of its own, `depth` deep.
    fn lines(&self, value: &Value, depth: usize) -> String {
        let mut bytes = Vec::new();
        let form = PrettyFormatter::with_indent(self.unit.as_bytes());
        // Writing maps with text keys to memory can't fail.
        let _ = serde::Serialize::serialize(value, &mut Serializer::with_formatter(&mut bytes, form));
        String::from_utf8_lossy(&bytes)
            .replace('\n', &format!("{}{}", self.line_end, self.unit.repeat(depth)))
    }
}

fn named(name: Option<&str>, value: &str) -> String {
    name.map(|name| format!("{}: {value}", Value::from(name))).unwrap_or_else(|| value.to_owned())
}

/// `value` in one line, with spaces in so many of the containers around our content.
fn spaced(value: &Value, containers: usize) -> String {
    match value {
        _ if containers == 0 => value.to_string(),
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(|value| spaced(value, containers - 1)).collect();
            format!("[ {} ]", values.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| named(Some(name), &spaced(value, containers - 1)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

/// Adds `value` at the end of `container`, whose contents are `depth` deep.
fn append(text: &mut String, container: &Item, depth: usize, name: Option<&str>, value: &Value) {
    match container.children.last() {
        Some(last) => {
            let style = Style::of(text);
            let (line_end, indent) = (style.line_end, style.unit.repeat(depth));
            let item = named(name, &style.lines(value, depth));
            text.insert_str(last.whole.end, &format!(",{line_end}{indent}{item}"));
        }
        None => text.insert_str(container.value.start + 1, &named(name, &spaced(value, 3 - depth))),
    }
}

fn put(text: &mut String, hook: &Hook) -> Result<(), &'static str> {
    let root = parse(text).ok_or(NOT_JSON)?;
    let value: Value = serde_json::from_str(text).map_err(|_| NOT_JSON)?;
    let Some(hooks) = root.property("hooks").map(|at| &root.children[at]) else {
        append(text, &root, 1, Some("hooks"), &json!({hook.event: [hook.group()]}));
        return Ok(());
    };
    let of_value = value["hooks"].as_object().ok_or(NOT_HOOKS)?;
    let Some(event) = hooks.property(hook.event).map(|at| &hooks.children[at]) else {
        append(text, hooks, 2, Some(hook.event), &json!([hook.group()]));
        return Ok(());
    };
    let groups = of_value.get(hook.event).and_then(Value::as_array).ok_or(NOT_HOOKS)?;
    let Some((at, within)) = find(groups, hook) else {
        append(text, event, 3, None, &hook.group());
        return Ok(());
    };
    if !hook.is_asked_in(&groups[at]) {
        take(text, hook)?;
        return put(text, hook);
    }
    let style = Style::of(text);
    let (group, others) = (&event.children[at], groups[at]["hooks"].as_array().map_or(0, Vec::len) - 1);
    if others == 0 && groups[at] != hook.group() {
        text.replace_range(group.value.clone(), &style.lines(&hook.group(), 3));
    } else if others > 0 && groups[at]["hooks"][within] != hook.inner() {
        let inner = group.property("hooks").map(|at| &group.children[at]).ok_or(NOT_HOOKS)?;
        text.replace_range(inner.children[within].value.clone(), &style.lines(&hook.inner(), 5));
    }
    Ok(())
}

/// Where ours is: which group, and where in it.
fn find(groups: &[Value], hook: &Hook) -> Option<(usize, usize)> {
    groups.iter().enumerate().find_map(|(at, group)| {
        let within = group["hooks"].as_array()?.iter().position(|inner| hook.is_inner(inner))?;
        Some((at, within))
    })
}

fn take(text: &mut String, hook: &Hook) -> Result<(), &'static str> {
    loop {
        let root = parse(text).ok_or(NOT_JSON)?;
        let value: Value = serde_json::from_str(text).map_err(|_| NOT_JSON)?;
        let Some(groups) = value["hooks"][hook.event].as_array() else { return Ok(()) };
        let Some((at, within)) = find(groups, hook) else { return Ok(()) };
        let mut path = Vec::new();
        path.push(root.property("hooks").ok_or(NOT_HOOKS)?);
        let hooks = &root.children[path[0]];
        path.push(hooks.property(hook.event).ok_or(NOT_HOOKS)?);
        path.push(at);
        if groups[at]["hooks"].as_array().map_or(0, Vec::len) > 1 {
            let group = &hooks.children[path[1]].children[at];
            path.push(group.property("hooks").ok_or(NOT_HOOKS)?);
            path.push(within);
        }
        let range = gone(&root, &path);
        text.replace_range(range, "");
    }
}

/// What goes with the item at `path`: a comma, and containers that were made for it.
fn gone(root: &Item, path: &[usize]) -> std::ops::Range<usize> {
    let Some((at, above)) = path.split_last() else {
        return root.value.start + 1..root.value.end - 1;
    };
    let container = above.iter().fold(root, |item, at| &item.children[*at]);
    let item = &container.children[*at];
    match (container.children.get(at + 1), at.checked_sub(1)) {
        (None, None) if item.whole.start == container.value.start + 1 => item.whole.clone(),
        (None, None) => gone(root, above),
        (_, Some(before)) => container.children[before].whole.end..item.whole.end,
        (Some(after), None) => item.whole.start..after.whole.start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(text: &str) -> String {
        edit(Some(text), Wanted::There).unwrap().unwrap()
    }

    #[test]
    fn put_in_and_taken_out_it_leaves_every_byte() {
        for text in [
            "{}",
            "{}\n",
            "{ }",
            "{\n}\n",
            r#"{"a":1}"#,
            "{\n  \"b\": [1, 2],\n  \"a\": {\"x\": \"\\\"}\"}\n}\n",
            "{\r\n\t\"model\": \"x\"\r\n}\r\n",
            r#"{"hooks": {}}"#,
            r#"{"hooks": {"PreToolUse": []}, "z": 1.50}"#,
            "{\n    \"hooks\": {\n        \"PreToolUse\": [\n            {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}\n        ]\n    },\n    \"a\": 1\n}",
            r#"{"hooks": {"SessionStart": [{"hooks": []}], "Stop": []}}"#,
        ] {
            let with = there(text);
            assert_eq!(there(&with), with, "twice: {text}");
            let mut value: Value = serde_json::from_str(&with).unwrap();
            for hook in &HOOKS {
                let groups = value["hooks"][hook.event].as_array_mut().unwrap();
                assert_eq!(groups.pop(), Some(hook.group()), "{with}");
            }
            let gone = edit(Some(&with), Wanted::Gone).unwrap().unwrap();
            assert_eq!(gone, text, "{with}");
        }
        let new = edit(None, Wanted::There).unwrap().unwrap();
        assert_eq!(there(&new), new);
        assert_eq!(edit(Some(&new), Wanted::Gone), Ok(None));
    }

    #[test]
    fn our_own_is_known_by_its_command() {
        let old = r#"{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "claim guard hook claude-code"}]}, {"hooks": []}]}}"#;
        let new = there(old);
        assert_eq!(new.matches("guard hook").count(), 1, "{new}");
        assert!(new.contains("NotebookEdit"));
        let shared = r#"{"hooks": {"SessionStart": [{"hooks": [{"command": "x"}, {"type": "command", "command": "/bin/claim prime --hook claude-code"}]}]}}"#;
        let new = there(shared);
        assert!(new.contains("{\"command\": \"x\"}") && new.matches("claim prime").count() == 1, "{new}");
        let gone = edit(Some(&new), Wanted::Gone).unwrap().unwrap();
        assert!(gone.contains("{\"command\": \"x\"}") && !gone.contains("claim"), "{gone}");
    }

    #[test]
    fn a_group_that_asks_of_less_is_left_to_the_others_in_it() {
        let narrowed = there("{}").replace("Write|Edit|MultiEdit|NotebookEdit|Bash", "Bash");
        let ours = r#"{"type":"command","command":"claim guard hook claude-code","timeout":5}"#;
        let shared = narrowed.replace(ours, &format!(r#"{ours}, {{"command": "x"}}"#));
        assert_ne!(shared, narrowed);
        let new: Value = serde_json::from_str(&there(&shared)).unwrap();
        let groups = &new["hooks"]["PreToolUse"];
        assert_eq!(groups[0], json!({"matcher": "Bash", "hooks": [{"command": "x"}]}));
        assert_eq!(groups[1], HOOKS[0].group());
        // One that asks of more does.
        let wide = shared.replace("\"Bash\"", "\"*\"");
        assert_eq!(there(&wide), wide);
    }

    #[test]
    fn what_is_not_understood_is_left() {
        for text in
            ["", "{", "[]", "1", "{} x", "// c\n{}", r#"{"hooks": []}"#, r#"{"hooks": {"PreToolUse": {}}}"#]
        {
            assert!(edit(Some(text), Wanted::There).is_err(), "{text}");
        }
    }
}
