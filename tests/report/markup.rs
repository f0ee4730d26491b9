//! A page taken apart, strictly: every element is closed in order, every attribute quoted, nothing is guessed.

/// An element.
#[derive(Debug, Default)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    /// All text in it, also in what it holds.
    pub text: String,
    pub children: Vec<Element>,
}

/// Elements that hold nothing and are not closed.
const VOID: [&str; 2] = ["meta", "input"];
/// Elements that hold no elements.
const RAW: [&str; 2] = ["style", "script"];

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The element and all in it, in order.
    pub fn all(&self) -> Vec<&Element> {
        let inside = self.children.iter().flat_map(Element::all);
        std::iter::once(self).chain(inside).collect()
    }

    /// Those of this name.
    pub fn named(&self, name: &str) -> Vec<&Element> {
        self.all().into_iter().filter(|element| element.name == name).collect()
    }

    /// Does it have this class?
    pub fn is(&self, class: &str) -> bool {
        self.attribute("class").is_some_and(|classes| classes.split(' ').any(|it| it == class))
    }
}

/// The element that a page is.
#[track_caller]
pub fn parse(page: &str) -> Element {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a document type");
    let mut open = vec![Element::default()];
    while !rest.is_empty() {
        let (text, tag) = rest.split_once('<').unwrap_or((rest, ""));
        open.iter_mut().for_each(|element| element.text.push_str(&unescaped(text)));
        if tag.is_empty() {
            break;
        }
        let end = end_of_tag(tag);
        let (tag, after) = (&tag[..end], &tag[end + 1..]);
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            let closed = open.pop().unwrap();
            assert_eq!(closed.name, name, "closed in another order");
            open.last_mut().unwrap().children.push(closed);
            continue;
        }
        let mut element = opened(tag);
        if VOID.contains(&element.name.as_str()) {
            open.last_mut().unwrap().children.push(element);
            continue;
        }
        if RAW.contains(&element.name.as_str()) {
            let (raw, after) = rest.split_once(&format!("</{}>", element.name)).expect("an end");
            (element.text, rest) = (raw.to_owned(), after);
            open.last_mut().unwrap().children.push(element);
            continue;
        }
        open.push(element);
    }
    assert_eq!(open.len(), 1, "{} is left open", open.last().unwrap().name);
    let mut page = open.pop().unwrap();
    assert_eq!(page.children.len(), 1);
    page.children.remove(0)
}

/// Where a tag ends: at the first `>` outside of quotes.
fn end_of_tag(tag: &str) -> usize {
    let mut quoted = false;
    tag.find(|c| {
        quoted ^= c == '"';
        c == '>' && !quoted
    })
    .expect("a tag's end")
}

fn opened(tag: &str) -> Element {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{tag}");
    let mut attributes = Vec::new();
    while !rest.is_empty() {
        let end = rest.find([' ', '=']).unwrap_or(rest.len());
        let (attribute, after) = rest.split_at(end);
        assert!(attribute.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{tag}");
        let (value, after) = match after.strip_prefix("=\"") {
            Some(quoted) => quoted.split_once('"').expect("a quote's end"),
            None => ("", after),
        };
        attributes.push((attribute.to_owned(), unescaped(value)));
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    Element { name: name.to_owned(), attributes, ..Element::default() }
}

#[track_caller]
fn unescaped(text: &str) -> String {
    assert!(!text.contains('<'), "{text}");
    let mut pieces = text.split('&');
    let mut found = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, after) = piece.split_once(';').expect("an entity's end");
        found.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            other => panic!("what is &{other};?"),
        });
        found.push_str(after);
    }
    found
}
