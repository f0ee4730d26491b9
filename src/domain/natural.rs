//! Ids in the order in which people count: `TK-2` before `TK-10`.

use std::iter::repeat_n;

use crate::id::NodeId;

/// What the characters up to `+` are written as, after a `+`: in their order, and plain in file names.
const LOW: &[u8; 44] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefgh";

/// The id's end. Whatever goes on comes after it.
const END: &str = "+-";

/// Text whose order, byte by byte, is the natural order of ids, and which is no other id's: runs of digits count as
/// numbers however long they are, all else by its code points, and `a` comes before `a1`. Ids that differ only in zeros
/// before their numbers come one after the other, those with fewer first.
///
/// ```
/// use claimdir::{NodeId, domain::natural};
/// let mut ids = ["TK-10", "TK-2", "TK-010", "TK-2/a"].map(|id| NodeId::new(id).unwrap());
/// ids.sort_by_cached_key(natural);
/// assert_eq!(ids.each_ref().map(NodeId::as_str), ["TK-2", "TK-2/a", "TK-10", "TK-010"]);
/// ```
pub fn natural(id: &NodeId) -> String {
    let (mut text, mut zeros) = (String::with_capacity(id.as_str().len() + 16), String::new());
    let mut rest = id.as_str();
    while let Some(first) = rest.chars().next() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (piece, after) = rest.split_at(digits.max(first.len_utf8()));
        match first {
            '0'..='9' => {
                let number = piece.trim_start_matches('0');
                text.push('0');
                push_length(&mut text, number.len());
                text.push_str(number);
                push_length(&mut zeros, piece.len() - number.len());
            }
            '.' => text.push_str(".a"),
            '/' => text.push_str(".b"),
            _ => match LOW.get(first as usize) {
                Some(code) => text.extend(['+', char::from(*code)]),
                None => text.push_str(piece),
            },
        }
        rest = after;
    }
    text + END + &zeros
}

/// The id whose natural text this is.
pub(crate) fn of_natural(text: &str) -> Option<NodeId> {
    let (mut rest, mut zeros) = text.rsplit_once(END)?;
    let mut id = String::with_capacity(rest.len());
    while let Some(first) = take(&mut rest) {
        match first {
            '0' => {
                let (length, leading) = (take_length(&mut rest)?, take_length(&mut zeros)?);
                id.extend(repeat_n('0', leading));
                let (number, after) = rest.split_at_checked(length)?;
                id.push_str(number);
                rest = after;
            }
            '.' => id.push(if take(&mut rest)? == 'a' { '.' } else { '/' }),
            '+' => {
                let code = take(&mut rest)?;
                let at = LOW.iter().position(|low| char::from(*low) == code)?;
                id.push(char::from(u8::try_from(at).ok()?));
            }
            _ => id.push(first),
        }
    }
    NodeId::new(id).ok().filter(|id| natural(id) == text)
}

fn take(text: &mut &str) -> Option<char> {
    let mut chars = text.chars();
    let first = chars.next();
    *text = chars.as_str();
    first
}

/// A length as text in the order of lengths: a letter, or `z` and three digits, which an id's never outgrow.
fn push_length(text: &mut String, length: usize) {
    match u8::try_from(length) {
        Ok(short @ 0..25) => text.push(char::from(b'a' + short)),
        _ => text.push_str(&format!("z{length:03x}")),
    }
}

fn take_length(text: &mut &str) -> Option<usize> {
    match take(text)? {
        short @ 'a'..='y' => Some(short as usize - 'a' as usize),
        'z' => {
            let (digits, after) = text.split_at_checked(3)?;
            *text = after;
            usize::from_str_radix(digits, 16).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(text: &str) -> NodeId {
        NodeId::new(text).unwrap()
    }

    #[test]
    fn numbers_count_as_numbers_however_long_they_are() {
        let (long, longer) = ("9".repeat(40), format!("1{}", "0".repeat(40)));
        let longest = "7".repeat(NodeId::MAX_BYTES);
        let ordered = [
            " 1", "+", "-", "0", "00", "1", "2", "010", "011", &long, &longer, &longest, "TK", "TK-1",
            "TK-01", "TK-1 a", "TK-1.a", "TK-1/a", "TK-1:a", "TK-1a", "TK-2", "TK-9", "TK-10", "TK-010",
            "TK-11", "a1-1", "a01-1", "a1-2", "a01-2", "b2c10", "b2c11", "b10c1", "~", "é", "é2", "é10",
        ];
        let texts: Vec<String> = ordered.iter().map(|text| natural(&id(text))).collect();
        for (at, pair) in texts.windows(2).enumerate() {
            assert!(pair[0] < pair[1], "{} before {}: {pair:?}", ordered[at], ordered[at + 1]);
        }
        for (text, written) in ordered.iter().zip(&texts) {
            assert_eq!(of_natural(written), Some(id(text)), "{written}");
            assert!(!written.contains('/') && !written.contains(|c: char| c.is_ascii_control()));
        }
    }

    #[test]
    fn what_no_id_is_written_as_is_none() {
        for odd in
            ["", "a", "+-", "0b1+-", "0b1+-b0", "0b01+-a", "0z001+-a", "+z+-", ".c+-", "1+-", "a+-a", "0é+-a"]
        {
            assert_eq!(of_natural(odd), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn every_id_reads_back(text in any::<String>(), digits in "[0-9a/.+~-]{1,60}") {
            for text in [text, digits] {
                if let Ok(id) = NodeId::new(text) {
                    prop_assert_eq!(of_natural(&natural(&id)), Some(id));
                }
            }
        }

        #[test]
        fn numbers_are_ordered_as_numbers(one in any::<u64>(), other in any::<u64>(), zeros in 0usize..30) {
            let text = |number| natural(&id(&format!("t{}{number}/x", "0".repeat(zeros))));
            prop_assert_eq!(text(one).cmp(&text(other)), one.cmp(&other));
        }
    }
}
