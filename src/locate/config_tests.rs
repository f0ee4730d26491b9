use super::*;

fn parsed(text: &str) -> Result<Settings, usize> {
    let mut settings = Settings::default();
    settings.parse(text.as_bytes()).map(|()| settings).map_err(|bad| bad.line)
}

fn bare(text: &str) -> Result<Option<bool>, usize> {
    parsed(text).map(|settings| settings.bare)
}

fn worktree(value: &str) -> Result<Option<PathBuf>, usize> {
    parsed(&format!("[core]\n\tworktree{value}")).map(|settings| settings.worktree)
}

#[test]
fn reads_what_git_writes() {
    let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tignorecase = true\n\tworktree = ../../../sub\n\
                [remote \"origin\"]\n\turl = /x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                [extensions]\n\tworktreeConfig = true\n";
    let expected = Settings {
        bare: Some(false),
        worktree: Some("../../../sub".into()),
        ignore_case: true,
        worktree_config: true,
    };
    assert_eq!(parsed(text), Ok(expected));
}

#[test]
fn knows_every_spelling_of_a_boolean() {
    for yes in
        [" = true", "=yes", " = ON", " = 1", " = -1", " = 0x10", " = 2k", "", "   ", " = \"true\" # no"]
    {
        assert_eq!(bare(&format!("[core]\nbare{yes}\n")), Ok(Some(true)), "{yes:?}");
    }
    for no in [" = false", "=no", " = Off", " = 0", " = 00", " =", " = \"\"", " = ; true", " = 0x0"] {
        assert_eq!(bare(&format!("[core]\nbare{no}\n")), Ok(Some(false)), "{no:?}");
    }
    for neither in [" = maybe", " = 08", " = 1x", " = k", " = true false", " = \u{e4}"] {
        assert_eq!(bare(&format!("[core]\nbare{neither}")), Err(2), "{neither:?}");
    }
}

#[test]
fn tells_sections_apart() {
    for other in ["[core \"sub\"]", "[core.sub]", "[cored]", "", "[core]\n[other]", "[other \"core]\"]"] {
        assert_eq!(bare(&format!("{other}\nbare = true\n")), Ok(None), "{other:?}");
    }
    for same in ["[CORE]", "[core]", " [Core] ", "[x]\n[core]", "[x \"a\\\"b\"]\n[core]", "\u{feff}[core]"] {
        assert_eq!(bare(&format!("{same}BARE = true\r\n")), Ok(Some(true)), "{same:?}");
    }
}

#[test]
fn the_last_value_counts() {
    assert_eq!(bare("[core]\nbare = true\n[x]\ny = 1\n[core]\nbare = false"), Ok(Some(false)));
}

#[test]
fn takes_a_value_as_git_does() {
    for (value, path) in [
        (" = /a b  c \t", "/a b  c"),
        (" = \"/a b \" ", "/a b "),
        (" = /a#b", "/a"),
        (" = \"/a#b;c\"", "/a#b;c"),
        (" = /a\" \"b ; c", "/a b"),
        (" = /a\\\n  /b", "/a  /b"),
        (" = /a\\\r\n/b\r\n", "/a/b"),
        (r#" = /a\\b\"c\td"#, "/a\\b\"c\td"),
        (" = /a \\\n", "/a "),
        (" = /a \"\" ", "/a "),
    ] {
        assert_eq!(worktree(value), Ok(Some(path.into())), "{value:?}");
    }
}

#[test]
fn names_the_line_it_cannot_read() {
    for value in ["", "\n", " /a", " = \"/a\n", " = \\x", " = \\\n\"", " = \""] {
        assert_eq!(worktree(value), Err(2), "{value:?}");
    }
    for text in [
        "[]",
        "[core",
        "[core\n]",
        "[core x]",
        "[core \"x]",
        "[core \"x\" ]",
        "=",
        "[ä]",
        "\0",
        "<<<<<<< HEAD",
    ] {
        assert!(bare(text).is_err(), "{text:?}");
    }
    assert_eq!(bare("[core]\n\n# x\n?\nbare = true\n"), Err(4));
}

#[test]
fn garbage_never_panics() {
    let seed =
        "[core \"a\\\"b\"]\r\n\tbare = \"tr\\tue\" # x\n[core]worktree=\\\n a;\n\u{feff}=0x\\".as_bytes();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        let mut text = seed.to_vec();
        for _ in 0..4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (at, byte) = ((state >> 33) as usize % text.len(), (state >> 24) as u8);
            match state >> 62 {
                0 => text.truncate(at.max(1)),
                1 => text[at] = seed[usize::from(byte) % seed.len()],
                2 => text[at] = byte,
                _ => text.insert(at, byte),
            }
        }
        let _ = Settings::default().parse(&text);
    }
}
