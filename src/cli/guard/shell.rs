//! The files that a shell's line surely writes: redirections, and a few commands whose operands are files.
//!
//! What is expanded, what comes after a `cd`, and what is in parentheses or in a here-document is not judged.

use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use super::call::Written;

/// A word as the command gets it; `None`: the shell expands it.
type Word = Option<String>;

#[derive(Debug, PartialEq)]
enum Token {
    Word(Word),
    /// The next word is a file that is written.
    Into,
    /// The next word is something else.
    From,
    /// A command ends.
    End,
}

/// What `line` writes. `is_folder` says whether there is such a folder.
pub(super) fn written(line: &str, is_folder: &dyn Fn(&Path) -> bool) -> Written {
    let (tokens, whole) = tokens(line);
    let mut seen = Seen { is_folder, unclear: !whole, ..Seen::new(is_folder) };
    let (mut words, mut tokens) = (Vec::new(), tokens.into_iter());
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) => words.push(word),
            Token::Into => match tokens.next() {
                Some(Token::Word(word)) => seen.file(word),
                _ => seen.unclear = true,
            },
            Token::From => drop(tokens.next()),
            Token::End => seen.command(std::mem::take(&mut words)),
        }
    }
    seen.command(words);
    let files = seen.files.into_iter().map(Into::into).collect();
    let unclear = seen.unclear.then(|| "not all of the command is clear".to_owned());
    Written { files, through: false, unclear }
}

struct Seen<'a> {
    files: Vec<String>,
    unclear: bool,
    /// Has a command gone to another folder?
    moved: bool,
    is_folder: &'a dyn Fn(&Path) -> bool,
}

impl<'a> Seen<'a> {
    fn new(is_folder: &'a dyn Fn(&Path) -> bool) -> Seen<'a> {
        Seen { files: Vec::new(), unclear: false, moved: false, is_folder }
    }

    fn file(&mut self, word: Word) {
        match word {
            Some(file) if !file.is_empty() && (!self.moved || file.starts_with('/')) => self.files.push(file),
            _ => self.unclear = true,
        }
    }

    fn command(&mut self, words: Vec<Word>) {
        let is_before = |word: &Word| {
            word.as_deref().is_some_and(|word| {
                let name = word.split_once('=').map_or("", |(name, _)| name);
                let assigns = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                assigns
                    || matches!(
                        word,
                        "!" | "if" | "then" | "else" | "elif" | "while" | "until" | "do" | "time"
                    )
            })
        };
        let mut words = words.into_iter().skip_while(is_before);
        let Some(name) = words.next() else { return };
        let (options, operands) = split(words);
        let is_plain = |letters: &str| {
            options.iter().all(|option| {
                let letters = |rest: &str| rest.chars().all(|c| letters.contains(c));
                option.strip_prefix("--").is_none() && option.strip_prefix('-').is_some_and(letters)
            })
        };
        match name.as_deref() {
            Some("cd" | "pushd" | "popd") => self.moved = true,
            Some("rm" | "rmdir" | "unlink") => operands.into_iter().for_each(|file| self.file(file)),
            Some("tee") if is_plain("aip") => operands.into_iter().for_each(|file| self.file(file)),
            Some("touch") if is_plain("acm") => operands.into_iter().for_each(|file| self.file(file)),
            Some("mv") if is_plain("finuv") => self.moves(operands, true),
            Some("cp") if is_plain("afinpRrdLPuv") => self.moves(operands, false),
            Some("sed") if options.iter().any(|option| option.starts_with("-i")) && is_plain("inErs") => {
                operands.into_iter().skip(1).for_each(|file| self.file(file));
            }
            // What another program writes is not known; what it was told to do need not be noted.
            Some("tee" | "touch" | "mv" | "cp" | "sed") | None => self.unclear = true,
            Some(_) => {}
        }
    }

    fn moves(&mut self, mut operands: Vec<Word>, from_too: bool) {
        let Some(target) = operands.pop().filter(|_| !operands.is_empty()) else { return };
        if let Some(folder) = target.as_deref().filter(|to| (self.is_folder)(Path::new(to))) {
            for operand in &operands {
                let name = operand.as_deref().and_then(|from| Path::new(from).file_name());
                self.file(name.and_then(|name| Path::new(folder).join(name).to_str().map(str::to_owned)));
            }
        } else {
            self.file(target);
        }
        if from_too {
            operands.into_iter().for_each(|file| self.file(file));
        }
    }
}

/// Options and operands. An option that the shell expands is taken for an operand, which is unclear.
fn split(words: impl Iterator<Item = Word>) -> (Vec<String>, Vec<Word>) {
    let (mut options, mut operands, mut ended) = (Vec::new(), Vec::new(), false);
    for word in words {
        match word {
            Some(word) if !ended && word == "--" => ended = true,
            Some(word) if !ended && word.len() > 1 && word.starts_with('-') => options.push(word),
            word => operands.push(word),
        }
    }
    (options, operands)
}

/// The line's tokens; `false`: they end before the line does, since the rest is not understood.
fn tokens(line: &str) -> (Vec<Token>, bool) {
    let (mut tokens, mut chars) = (Vec::new(), line.chars().peekable());
    let mut has_document = false;
    while let Some(&c) = chars.peek() {
        match c {
            '\n' if has_document => return (tokens, false),
            '\n' | ';' | '|' => {
                chars.next();
                tokens.push(Token::End);
            }
            '&' => {
                chars.next();
                // `&>` writes a file as `>` does.
                if chars.peek() != Some(&'>') {
                    tokens.push(Token::End);
                }
            }
            c if c.is_whitespace() => drop(chars.next()),
            '#' => while chars.next_if(|c| *c != '\n').is_some() {},
            '(' | ')' => return (tokens, false),
            '<' => {
                let count = std::iter::from_fn(|| chars.next_if_eq(&'<')).count();
                has_document |= count == 2;
                let _ = chars.next_if(|c| matches!(c, '-' | '&' | '>'));
                tokens.push(Token::From);
            }
            '>' => {
                chars.next();
                let _ = chars.next_if(|c| matches!(c, '>' | '|'));
                let is_copy = chars.next_if_eq(&'&').is_some();
                let to_descriptor = is_copy && chars.peek().is_some_and(|c| c.is_ascii_digit() || *c == '-');
                tokens.push(if to_descriptor { Token::From } else { Token::Into });
            }
            _ => {
                let Some(word) = word(&mut chars) else { return (tokens, false) };
                let is_number = word.as_deref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()));
                // `2>`: a descriptor's number is no word.
                if !(is_number && matches!(chars.peek(), Some('>' | '<'))) {
                    tokens.push(Token::Word(word));
                }
            }
        }
    }
    (tokens, true)
}

/// The next word. `None`: it does not end.
fn word(chars: &mut Peekable<Chars<'_>>) -> Option<Word> {
    let (mut text, mut expands) = (String::new(), chars.peek() == Some(&'~'));
    while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !";|&<>()".contains(*c)) {
        match c {
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    c => text.push(c),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => match chars.next()? {
                        '\n' => {}
                        c @ ('$' | '`' | '"' | '\\') => text.push(c),
                        c => text.extend(['\\', c]),
                    },
                    c => {
                        expands |= matches!(c, '$' | '`');
                        text.push(c);
                    }
                }
            },
            '\\' => match chars.next()? {
                '\n' => {}
                c => text.push(c),
            },
            c => {
                expands |= "$`*?[{}".contains(c);
                text.push(c);
            }
        }
    }
    Some((!expands).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(line: &str) -> (Vec<String>, bool) {
        let written = written(line, &|path| path == Path::new("folder"));
        let text = |file: std::ffi::OsString| file.into_string().unwrap();
        (written.files.into_iter().map(text).collect(), written.unclear.is_some())
    }

    #[test]
    fn finds_what_is_surely_written() {
        for (line, expected) in [
            ("echo hi > a", vec!["a"]),
            ("echo hi>a 2>&1", vec!["a"]),
            ("make 2> log >>out", vec!["log", "out"]),
            ("make &> log", vec!["log"]),
            ("cat b | tee -a 'a file' \"c\"", vec!["a file", "c"]),
            ("X=1 rm -rf -- a/b; touch c\nmv d e", vec!["a/b", "c", "e", "d"]),
            ("cp x folder && mv y folder", vec!["folder/x", "folder/y", "y"]),
            ("sed -i s/a/b/ f g", vec!["f", "g"]),
            ("cargo test # > no", vec![]),
            ("echo '> no' \\> no", vec![]),
            ("sort < in", vec![]),
            ("sed s/a/b/ f 2>/dev/null", vec!["/dev/null"]),
        ] {
            let line_files = files(line);
            assert_eq!(line_files.0, expected, "{line}");
        }
    }

    #[test]
    fn leaves_what_is_unclear() {
        for (line, expected) in [
            ("rm $FILE", vec![]),
            ("rm *.rs", vec![]),
            ("echo > \"$OUT\"", vec![]),
            ("cd sub && echo > a", vec![]),
            ("cd sub && echo > /a", vec!["/a"]),
            ("(rm a)", vec![]),
            ("cat > a <<'EOF'\nrm b\nEOF\n", vec!["a"]),
            ("cat <<EOF > a\nrm b\nEOF\n", vec!["a"]),
            ("touch -d now a", vec![]),
            ("echo 'unended > a", vec![]),
            ("rm ~/a", vec![]),
        ] {
            let (found, unclear) = files(line);
            assert_eq!(
                (found, unclear || line.starts_with("cd sub && echo > /a")),
                (expected.iter().map(|s| (*s).to_owned()).collect(), true),
                "{line}"
            );
        }
    }
}
