//! Text from records, made harmless for a terminal. JSON keeps it exactly.

use std::borrow::Cow;

/// `text` with what could move a cursor, forge a line or turn the reading direction written as an escape.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_harmful(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Control characters (also DEL and C1), line separators, and marks that reorder or hide text.
pub(crate) fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{061c}' | '\u{180e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// `text` as one word for a POSIX shell.
pub(crate) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_a_terminal_would_act_on() {
        assert_eq!(harmless("plain ä 字"), "plain ä 字");
        assert_eq!(harmless("a\u{1b}[2Jb\nc\u{202e}\u{9b}"), r"a\u{1b}[2Jb\nc\u{202e}\u{9b}");
    }

    #[test]
    fn quotes_for_a_shell() {
        assert_eq!(shell_word("it's $HOME"), r"'it'\''s $HOME'");
    }
}
