//! A block at the beginning of a shell's script: what follows it runs as before, if the block lets it.

use super::block::find;
use super::{Edited, Wanted};

/// The first line of a script that is all ours.
const SHELL: &str = "#!/bin/sh\n";

/// The name of a hook that was there before and is no shell script ends so.
pub(super) const ASIDE: &str = ".before-claim";

/// One that goes on with the hook that was put aside.
pub(super) fn chain(block: &str) -> String {
    format!("{SHELL}{}\n", chained(block))
}

fn chained(block: &str) -> String {
    match block.rsplit_once('\n') {
        Some((body, end)) => format!("{body}\nexec \"$0{ASIDE}\" \"$@\"\n{end}"),
        None => block.to_owned(),
    }
}

/// Does `text` go on with a hook that was put aside?
pub(super) fn is_chain(text: &str) -> bool {
    text.contains(&format!("exec \"$0{ASIDE}\""))
}

/// A script that is all ours.
pub(super) fn own(block: &str) -> String {
    format!("{SHELL}{block}\n")
}

/// Puts `block` after the line that says what runs the script, if there is one, or where it is already.
pub(super) fn edit(text: Option<&str>, block: &str, wanted: Wanted) -> Edited {
    let Some(text) = text else {
        return Ok((wanted == Wanted::There).then(|| own(block)));
    };
    match (find(text)?, wanted) {
        (Some(at), Wanted::There) => Ok(Some(format!("{}{block}{}", &text[..at.start], &text[at.end..]))),
        (Some(at), Wanted::Gone) => {
            let (before, after) = (&text[..at.start], &text[at.end..]);
            match after.strip_prefix('\n') {
                Some("") if before == SHELL => Ok(None),
                Some(after) => Ok(Some(format!("{before}{after}"))),
                // The first line had no end, and so the block has none.
                None => Ok(Some(before.strip_suffix('\n').unwrap_or(before).to_owned())),
            }
        }
        (None, Wanted::Gone) => Ok(Some(text.to_owned())),
        (None, Wanted::There) => Ok(Some(match text.split_once('\n') {
            _ if !text.starts_with("#!") => format!("{block}\n{text}"),
            Some((first, rest)) => format!("{first}\n{block}\n{rest}"),
            None => format!("{text}\n{block}"),
        })),
    }
}

/// Does a shell run it?
pub(super) fn is_shell(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let Some(words) = first.strip_prefix("#!") else { return false };
    let mut words = words.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let program = words.find(|word| !matches!(*word, "env" | "-S"));
    matches!(program, Some("sh" | "bash" | "dash" | "ash" | "ksh" | "zsh"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "# >>> claim >>>\ncheck || exit 1\n# <<< claim <<<";

    #[test]
    fn put_in_and_taken_out_it_leaves_every_byte() {
        for text in
            ["#!/bin/sh\n", "#!/bin/sh", "#!/bin/sh -e\nx", "#!/usr/bin/env bash\n\nx\n", "x\ny", "", SHELL]
        {
            let there = edit(Some(text), BLOCK, Wanted::There).unwrap().unwrap();
            let line = usize::from(text.starts_with("#!"));
            assert!(there.lines().nth(line).unwrap().contains(">>>"), "{there}");
            assert_eq!(edit(Some(&there), BLOCK, Wanted::There).unwrap().as_ref(), Some(&there));
            let gone = edit(Some(&there), BLOCK, Wanted::Gone).unwrap();
            let is_ours = text == SHELL;
            assert_eq!(gone.as_deref(), (!is_ours).then_some(text), "{there:?}");
        }
        for text in ["", "x\n", "#!/usr/bin/python3\n", "#!/usr/bin/env node\n"] {
            assert!(!is_shell(text), "{text:?}");
        }
        assert!(is_chain(&chain(BLOCK)) && chain(BLOCK).ends_with("\n# <<< claim <<<\n"));
    }
}
