//! A marked block in a text of somebody else's.

use std::ops::Range;

use super::{Edited, Wanted};

/// What a block begins and ends with, within its first and its last line.
const BEGIN: &str = ">>> claim >>>";
const END: &str = "<<< claim <<<";

/// Two begin, or one does not end.
const BROKEN: &str = "the marks of its block are not a pair; mend or remove them by hand";

/// Puts `block` at the text's end, after a blank line, or where it is already; a new file begins with `head`.
///
/// How the block ends tells what was there before: a text without a last line's end gets a block without one.
pub(super) fn edit(text: Option<&str>, head: &str, block: &str, wanted: Wanted) -> Edited {
    let Some(text) = text else {
        return Ok((wanted == Wanted::There).then(|| format!("{head}{block}\n")));
    };
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let block = block.replace('\n', line_end);
    let found = find(text)?;
    Ok(match (found, wanted) {
        (Some(at), Wanted::There) => Some(format!("{}{block}{}", &text[..at.start], &text[at.end..])),
        (None, Wanted::There) => Some(match text {
            "" => block,
            text if text.ends_with('\n') => format!("{text}{line_end}{block}{line_end}"),
            text => format!("{text}{line_end}{line_end}{block}"),
        }),
        (None, Wanted::Gone) => Some(text.to_owned()),
        (Some(at), Wanted::Gone) => without(&text[..at.start], &text[at.end..], head, line_end),
    })
}

fn without(before: &str, after: &str, head: &str, line_end: &str) -> Option<String> {
    let strip = |text: &str| text.strip_suffix(line_end).unwrap_or(text).len();
    match after {
        "" => {
            let once = &before[..strip(before)];
            Some(once[..strip(once)].to_owned())
        }
        after if after == line_end && before == head => None,
        after => {
            let after = after.strip_prefix(line_end).unwrap_or(after);
            // The blank line is ours.
            let is_blank = before.ends_with(&line_end.repeat(2));
            Some(format!("{}{after}", &before[..if is_blank { strip(before) } else { before.len() }]))
        }
    }
}

/// A file that is all ours.
pub(super) fn whole(text: Option<&str>, ours: &str, wanted: Wanted) -> Edited {
    match text {
        Some(text) if !text.contains(BEGIN) => match wanted {
            Wanted::There => Err("it is there already, and was not made by claim"),
            Wanted::Gone => Ok(Some(text.to_owned())),
        },
        _ => Ok((wanted == Wanted::There).then(|| ours.to_owned())),
    }
}

/// Where the block is: from its first line's start to its last line's end, without that line's end.
pub(super) fn find(text: &str) -> Result<Option<Range<usize>>, &'static str> {
    let (begins, ends) = (text.matches(BEGIN).count(), text.matches(END).count());
    let (begin, end) = match (begins, ends, text.find(BEGIN), text.find(END)) {
        (0, 0, ..) => return Ok(None),
        (1, 1, Some(begin), Some(end)) if begin < end => (begin, end),
        _ => return Err(BROKEN),
    };
    let start = text[..begin].rfind('\n').map_or(0, |at| at + 1);
    let stop = text[end..].find('\n').map_or(text.len(), |at| end + at);
    let stop = if text[..stop].ends_with('\r') { stop - 1 } else { stop };
    Ok(Some(start..stop))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "# >>> claim >>> x\nbody\n# <<< claim <<<";

    #[test]
    fn put_in_and_taken_out_it_leaves_every_byte() {
        for text in ["", "\n", "a", "a\n", "a\n\n", "a\r\nb\r\n", "a\r\nb", "\n\n", "a\n\nb", "é"] {
            let there = edit(Some(text), "head\n", BLOCK, Wanted::There).unwrap().unwrap();
            assert_ne!(there, text);
            assert_eq!(
                edit(Some(&there), "head\n", BLOCK, Wanted::There).unwrap().as_ref(),
                Some(&there),
                "{text:?}"
            );
            let gone = edit(Some(&there), "head\n", BLOCK, Wanted::Gone).unwrap();
            assert_eq!(gone.as_deref(), Some(text), "{there:?}");
        }
        let new = edit(None, "head\n", BLOCK, Wanted::There).unwrap().unwrap();
        assert!(new.starts_with("head\n# >>>") && new.ends_with("<<<\n"));
        assert_eq!(edit(Some(&new), "head\n", BLOCK, Wanted::Gone), Ok(None));
        assert_eq!(edit(None, "", BLOCK, Wanted::Gone), Ok(None));
    }

    #[test]
    fn an_old_block_is_replaced_where_it_is() {
        let old = "before\n# >>> claim >>> old\n# <<< claim <<< old\nafter\n";
        let new = edit(Some(old), "", BLOCK, Wanted::There).unwrap().unwrap();
        assert_eq!(new, format!("before\n{BLOCK}\nafter\n"));
        assert_eq!(edit(Some(&new), "", BLOCK, Wanted::Gone), Ok(Some("before\nafter\n".to_owned())));
        for broken in ["# >>> claim >>>", "# <<< claim <<<\n# >>> claim >>>", &format!("{BLOCK}\n{BLOCK}")] {
            assert_eq!(edit(Some(broken), "", BLOCK, Wanted::There), Err(BROKEN));
        }
    }
}
