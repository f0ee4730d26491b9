//! Keys, of what a terminal sends for them.
//!
//! crossterm reads them too, but it waits for the rest of half a sequence, and reads for ever from a terminal that is
//! gone; here one poll loop also hears signals.

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    /// With Ctrl held; the letter is lower case.
    Ctrl(char),
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

/// Takes the keys out of `bytes`, all that could be read by now. What may be the beginning of a key stays there.
pub(crate) fn decode(bytes: &mut Vec<u8>) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let Some((key, length)) = first(rest) else { break };
        keys.extend(key);
        at += length;
    }
    bytes.drain(..at);
    keys
}

/// The longest sequence that is waited for; what is longer is no key.
const LONGEST: usize = 32;

/// The first key and its length. No key: one that means nothing here. `None`: the rest of it has yet to come.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let first = *bytes.first()?;
    let key = match first {
        b'\r' | b'\n' => Key::Enter,
        b'\t' => Key::Tab,
        0x7f | 0x08 => Key::Backspace,
        0x1b => return escape(bytes),
        1..=26 => Key::Ctrl(char::from(first - 1 + b'a')),
        0..0x20 => return Some((None, 1)),
        _ => return character(bytes),
    };
    Some((Some(key), 1))
}

fn character(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let head = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if e.valid_up_to() > 0 => std::str::from_utf8(head.get(..e.valid_up_to())?).ok()?,
        Err(e) => return e.error_len().map(|length| (None, length)),
    };
    let first = valid.chars().next()?;
    Some((Some(Key::Char(first)), first.len_utf8()))
}

/// What begins with ESC: a sequence, or the key itself, since nothing has come with it.
fn escape(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    match bytes.get(1) {
        Some(b'O') => bytes.get(2).map(|last| (named(*last, b""), 3)),
        Some(b'[') => {
            let body = bytes.get(2..).unwrap_or_default();
            match body.iter().position(|byte| !(0x20..0x40).contains(byte)) {
                Some(end) => {
                    let last = body.get(end).copied().unwrap_or_default();
                    Some((named(last, body.get(..end).unwrap_or_default()), 2 + end + 1))
                }
                None if bytes.len() > LONGEST => Some((None, bytes.len())),
                None => None,
            }
        }
        _ => Some((Some(Key::Esc), 1)),
    }
}

/// The key of a sequence that ends with `last`.
fn named(last: u8, parameters: &[u8]) -> Option<Key> {
    let number = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
    Some(match (last, number) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"5") => Key::PageUp,
        (b'~', b"6") => Key::PageDown,
        (b'Z', _) => Key::BackTab,
        (b'M', _) => Key::Enter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> (Vec<Key>, Vec<u8>) {
        let mut bytes = bytes.to_vec();
        (decode(&mut bytes), bytes)
    }

    #[test]
    fn keys_are_told_apart() {
        let (found, rest) = keys(b"jG\r\t\x1b[Z\x1b[A\x1bOB\x1b[5~\x1b[1;5H\x03\x7f\xc3\xa4\x1bq");
        use Key::*;
        assert_eq!(
            found,
            [
                Char('j'),
                Char('G'),
                Enter,
                Tab,
                BackTab,
                Up,
                Down,
                PageUp,
                Home,
                Ctrl('c'),
                Backspace,
                Char('ä'),
                Esc,
                Char('q')
            ]
        );
        assert!(rest.is_empty());
    }

    #[test]
    fn the_rest_of_a_key_may_come_later() {
        for (first, then, key) in [
            (&b"\x1b["[..], &b"B"[..], Key::Down),
            (b"\x1b[6", b"~", Key::PageDown),
            (b"\xe5\xad", b"\x97", Key::Char('字')),
        ] {
            let (found, mut bytes) = keys(first);
            assert!(found.is_empty(), "{first:?}");
            bytes.extend(then);
            assert_eq!((decode(&mut bytes), bytes), (vec![key], vec![]), "{first:?}");
        }
    }

    #[test]
    fn nothing_that_comes_is_kept_for_ever() {
        for junk in [&[0x1b, b'[', b'9'][..], &[0xff], &[0xe5], &[0], &[0x1b, b'O']] {
            let mut bytes = junk.repeat(40);
            decode(&mut bytes);
            assert!(bytes.len() <= LONGEST, "{junk:?} left {}", bytes.len());
        }
        let mut bytes = [b"\x1b[".as_slice(), &b"1".repeat(1000)].concat();
        assert_eq!((decode(&mut bytes), bytes.len()), (vec![], 0));
    }
}
