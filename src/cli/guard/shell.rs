//! The files that a shell's line surely writes: redirections, and a few commands whose operands are files.
//!
//! What is expanded, what comes after a `cd` that is not sure to lead where it says, and what is in parentheses or in a
//! here-document is not judged.

use std::iter::Peekable;
use std::path::{Path, PathBuf};
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
    /// A command ends that runs in a shell of its own, as the next one does: `|`.
    Pipe,
    /// All commands so far run in a shell of their own: `&`.
    Aside,
}

/// What `line` writes. `is_folder` says whether there is such a folder.
pub(super) fn written(line: &str, is_folder: &dyn Fn(&Path) -> bool) -> Written {
    let mut seen =
        Seen { files: Vec::new(), unclear: false, at: Some(PathBuf::new()), loops: false, is_folder };
    seen.line(line);
    let unclear = seen.unclear.then(|| "not all of the command is clear".to_owned());
    Written { files: seen.files.into_iter().map(Into::into).collect(), through: false, unclear }
}

struct Seen<'a> {
    files: Vec<PathBuf>,
    unclear: bool,
    /// The folder that the commands run in, from the first one's; `None`: that is not known any more.
    at: Option<PathBuf>,
    /// May a command run more than once?
    loops: bool,
    is_folder: &'a dyn Fn(&Path) -> bool,
}

impl Seen<'_> {
    fn line(&mut self, line: &str) {
        let (tokens, whole) = tokens(line);
        self.unclear |= !whole;
        let (mut words, mut tokens) = (Vec::new(), tokens.into_iter());
        let mut in_pipe = false;
        while let Some(token) = tokens.next() {
            match token {
                Token::Word(word) => words.push(word),
                Token::Into => match tokens.next() {
                    Some(Token::Word(word)) => self.file(word),
                    _ => self.unclear = true,
                },
                Token::From => drop(tokens.next()),
                Token::End | Token::Pipe | Token::Aside => {
                    let is_pipe = token == Token::Pipe;
                    self.command(std::mem::take(&mut words), in_pipe || is_pipe);
                    in_pipe = is_pipe;
                    if token == Token::Aside {
                        self.at = self.at.take().filter(|at| at.as_os_str().is_empty());
                    }
                }
            }
        }
        self.command(words, in_pipe);
    }

    /// The file's whole name, if it is known.
    fn full(&self, file: &str) -> Option<PathBuf> {
        match &self.at {
            _ if file.is_empty() => None,
            Some(at) => Some(at.join(file)),
            None => file.starts_with('/').then(|| PathBuf::from(file)),
        }
    }

    fn file(&mut self, word: Word) {
        match word.and_then(|file| self.full(&file)) {
            Some(file) => self.files.push(file),
            None => self.unclear = true,
        }
    }

    fn files(&mut self, words: impl IntoIterator<Item = Word>) {
        words.into_iter().for_each(|word| self.file(word));
    }

    /// `apart`: it runs in a shell of its own.
    fn command(&mut self, words: Vec<Word>, apart: bool) {
        let before = words.iter().take_while(|word| is_before(word)).count();
        self.loops |= words[..before].iter().any(|word| word.as_deref() == Some("do"));
        let mut words = words.into_iter().skip(before);
        let Some(name) = words.next() else { return };
        let (options, mut operands) = split(words);
        let is_plain = |letters: &str| {
            options.iter().all(|option| {
                let letters = |rest: &str| rest.chars().all(|c| letters.contains(c));
                option.strip_prefix("--").is_none() && option.strip_prefix('-').is_some_and(letters)
            })
        };
        let has =
            |letter: char| options.iter().any(|option| !option.starts_with("--") && option.contains(letter));
        match name.as_deref() {
            Some("cd" | "pushd" | "popd") if apart => {}
            Some("cd") if options.is_empty() && operands.len() == 1 && !self.loops => {
                let to = operands.pop().flatten().filter(|to| to != "-");
                let is_folder = self.is_folder;
                self.at = to.and_then(|to| self.full(&to)).filter(|to| is_folder(to));
            }
            Some("cd" | "pushd" | "popd") => self.at = None,
            Some("sh" | "bash" | "dash" | "zsh") if has('c') => match operands.into_iter().next().flatten() {
                Some(line) => {
                    let (at, loops) = (self.at.clone(), self.loops);
                    self.line(&line);
                    (self.at, self.loops) = (at, loops);
                }
                None => self.unclear = true,
            },
            Some("rm" | "rmdir" | "unlink") => self.files(operands),
            Some("tee") if is_plain("aip") => self.files(operands),
            Some("touch") if is_plain("acm") => self.files(operands),
            Some("truncate") if options == ["-s"] => self.files(operands.into_iter().skip(1)),
            Some("mv") if is_plain("finuv") => self.moves(operands, true),
            Some("cp") if is_plain("afinpRrdLPuv") => self.moves(operands, false),
            Some("ln") if is_plain("sfnrv") => self.moves(operands, false),
            Some("install") if options.is_empty() => self.moves(operands, false),
            Some("sed") if options.iter().any(|option| option.starts_with("-i")) && is_plain("inErs") => {
                self.files(operands.into_iter().skip(1));
            }
            Some("dd") => {
                let to = operands
                    .into_iter()
                    .flatten()
                    .filter_map(|word| Some(word.strip_prefix("of=")?.to_owned()));
                self.files(to.map(Some));
            }
            Some("git") => self.git(&options, operands),
            // What another program writes is not known; what it was told to do need not be noted, unless it is to write.
            Some("tee" | "touch" | "truncate" | "mv" | "cp" | "ln" | "install") | None => self.unclear = true,
            Some("patch" | "eval" | "xargs" | "rsync" | "tar" | "unzip" | "ed" | "ex") => self.unclear = true,
            Some("sed" | "perl" | "ruby") if has('i') || has('e') => self.unclear = true,
            Some("python" | "python3") if has('c') => self.unclear = true,
            Some("node") if has('e') => self.unclear = true,
            Some("find") => {
                self.unclear |= options.iter().any(|it| it == "-delete" || it.starts_with("-exec"));
            }
            Some(_) => {}
        }
    }

    fn git(&mut self, options: &[String], mut operands: Vec<Word>) {
        let rest = operands.split_off(operands.len().min(1));
        match operands.pop().flatten().as_deref() {
            Some("mv") if options.is_empty() => self.moves(rest, true),
            Some("rm") if !options.iter().any(|it| it == "--cached") => self.files(rest),
            Some("restore") if options.is_empty() => self.files(rest),
            Some("mv" | "restore" | "checkout" | "apply" | "am" | "stash" | "reset" | "clean") => {
                self.unclear = true
            }
            _ => {}
        }
    }

    fn moves(&mut self, mut operands: Vec<Word>, from_too: bool) {
        let Some(target) = operands.pop().filter(|_| !operands.is_empty()) else { return };
        let is_folder = |to: &&str| self.full(to).is_some_and(|to| (self.is_folder)(&to));
        if let Some(folder) = target.as_deref().filter(is_folder) {
            for operand in &operands {
                let name = operand.as_deref().and_then(|from| Path::new(from).file_name());
                self.file(name.and_then(|name| Path::new(folder).join(name).to_str().map(str::to_owned)));
            }
        } else {
            self.file(target);
        }
        if from_too {
            self.files(operands);
        }
    }
}

/// Does a command only begin after `word`?
fn is_before(word: &Word) -> bool {
    word.as_deref().is_some_and(|word| {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        let assigns = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        assigns
            || matches!(word, "!" | "if" | "then" | "else" | "elif" | "while" | "until" | "do" | "time")
            || matches!(word, "command" | "builtin" | "exec" | "nohup" | "sudo" | "env")
    })
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
            '\n' | ';' => {
                chars.next();
                tokens.push(Token::End);
            }
            '|' => {
                chars.next();
                let is_or = chars.next_if_eq(&'|').is_some();
                tokens.push(if is_or { Token::End } else { Token::Pipe });
            }
            '&' => {
                chars.next();
                let is_and = chars.next_if_eq(&'&').is_some();
                // `&>` writes a file as `>` does.
                if chars.peek() != Some(&'>') || is_and {
                    tokens.push(if is_and { Token::End } else { Token::Aside });
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
            ("cd folder && echo > a; cd /x || true", vec!["folder/a"]),
            ("cd folder && mv a b/c", vec!["folder/b/c", "folder/a"]),
            ("cd folder | true; echo > a", vec!["a"]),
            ("bash -c 'cd folder; echo > a'; echo > b", vec!["folder/a", "b"]),
            ("sudo sh -ec \"rm a\" | tee b", vec!["a", "b"]),
            ("dd if=x of=a; truncate -s 0 b; ln -sf x folder; install x c", vec!["a", "b", "folder/x", "c"]),
            (
                "git mv a b && git rm -q c; git restore d; git rm --cached e; git add f",
                vec!["b", "a", "c", "d"],
            ),
            ("python3 script.py; find . -name x; perl x.pl; git status", vec![]),
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
            ("cd folder & echo > a", vec![]),
            ("cd folder && make & echo > a", vec![]),
            ("for f in a b; do cd folder; echo > a; done", vec![]),
            ("cd folder && cd - && echo > a", vec![]),
            ("bash -c \"$X\"", vec![]),
            ("perl -pi -e s/a/b/ f", vec![]),
            ("python3 -c 'open(1)'", vec![]),
            ("find . -name x -delete", vec![]),
            ("git checkout -- a", vec![]),
            ("git stash", vec![]),
            ("eval x", vec![]),
            ("ls | xargs rm", vec![]),
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
