//! Where the values of a JSON text are in it. The text was found to be JSON before.

use std::ops::Range;

/// A value, or an object's property, in its text.
#[derive(Debug)]
pub(super) struct Item {
    /// Where it is; of a property, with its name.
    pub(super) whole: Range<usize>,
    /// Where the value is.
    pub(super) value: Range<usize>,
    /// A property's name.
    pub(super) name: Option<String>,
    /// An object's properties or an array's elements.
    pub(super) children: Vec<Item>,
}

impl Item {
    /// The property `name`; of several the last, which counts.
    pub(super) fn property(&self, name: &str) -> Option<usize> {
        self.children.iter().rposition(|child| child.name.as_deref() == Some(name))
    }
}

/// The one value that `text` is.
pub(super) fn parse(text: &str) -> Option<Item> {
    Scan { bytes: text.as_bytes(), text, at: 0 }.value()
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn value(&mut self) -> Option<Item> {
        let (first, start) = (self.peek()?, self.at);
        let mut children = Vec::new();
        match first {
            b'{' | b'[' => {
                self.at += 1;
                loop {
                    match self.peek()? {
                        b'}' | b']' => break self.at += 1,
                        b',' => self.at += 1,
                        _ if first == b'{' => children.push(self.property()?),
                        _ => children.push(self.value()?),
                    }
                }
            }
            b'"' => self.string()?,
            _ => {
                let ends = |byte: &u8| byte.is_ascii_whitespace() || b",]}".contains(byte);
                while self.bytes.get(self.at).is_some_and(|byte| !ends(byte)) {
                    self.at += 1;
                }
            }
        }
        Some(Item { whole: start..self.at, value: start..self.at, name: None, children })
    }

    fn property(&mut self) -> Option<Item> {
        let start = self.at;
        self.string()?;
        let name = serde_json::from_str(&self.text[start..self.at]).ok()?;
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        let value = self.value()?;
        Some(Item { whole: start..self.at, name: Some(name), ..value })
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(())
    }
}
