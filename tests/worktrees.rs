//! Where the claim directory is, asked from everywhere in repositories that the real git has made: all
//! worktrees of one repository must come to one directory, and what is in doubt must be refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use claimdir::locate::{Located, OwnerSource, Places, Why, locate, locate_for_init, owner, worktree};
use claimdir::{Code, Error};

/// A scratch folder, free of symbolic links, and a git that knows no other configuration.
struct World {
    root: PathBuf,
    _scratch: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let scratch = tempfile::tempdir().unwrap();
        World { root: scratch.path().canonicalize().unwrap(), _scratch: scratch }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Makes a folder.
    fn folder(&self, path: &str) -> PathBuf {
        fs::create_dir_all(self.at(path)).unwrap();
        self.at(path)
    }

    fn try_git(&self, folder: &str, arguments: &str) -> Output {
        let settings =
            ["protocol.file.allow=always", "user.name=t", "user.email=t@t", "init.defaultBranch=main"];
        Command::new("git")
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
            .args(arguments.split(' '))
            .current_dir(self.at(folder))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("these tests need git")
    }

    fn git(&self, folder: &str, arguments: &str) {
        let output = self.try_git(folder, arguments);
        assert!(output.status.success(), "git {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A repository with one commit in its main worktree.
    fn repository(&self, path: &str) {
        self.git("", &format!("init -q {path}"));
        self.git(path, "commit -q --allow-empty -m one");
    }

    fn locate(&self, cwd: &str) -> Result<Located, Error> {
        locate(&Places { argument: None, variable: None, cwd: &self.at(cwd) })
    }

    fn worktree(&self, cwd: &str) -> Option<PathBuf> {
        worktree(&self.at(cwd))
    }

    fn init(&self, cwd: &str) -> Located {
        locate_for_init(&Places { argument: None, variable: None, cwd: &self.at(cwd) }).unwrap()
    }

    /// Every one of `folders` comes to `expected`, before it exists and after.
    #[track_caller]
    fn agree(&self, folders: &[&str], expected: &str) {
        for exists in [false, true] {
            for folder in folders {
                let located = self.locate(folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
                assert_eq!((located.path, located.exists), (self.at(expected), exists), "from {folder:?}");
            }
            fs::create_dir_all(self.at(expected)).unwrap();
        }
    }

    /// Refused from `cwd` with `code`; the message names `named`, and there is a next step that destroys nothing.
    #[track_caller]
    fn refused(&self, cwd: &str, code: Code, named: &[&str]) {
        let error = self.locate(cwd).expect_err(cwd);
        refused(&error, code);
        for path in named {
            assert!(error.to_string().contains(self.at(path).to_str().unwrap()), "{path} is not in: {error}");
        }
    }
}

#[track_caller]
fn refused(error: &Error, code: Code) {
    assert_eq!(error.code(), code, "{error}");
    let hint = error.next_step().expect("a next step");
    assert!(hint.contains("--dir") && !hint.contains("rm ") && !hint.contains("delete"), "{hint}");
}

#[test]
fn a_plain_repository_has_it_at_its_root() {
    let world = World::new();
    world.repository("main");
    world.folder("main/a/b");
    world.agree(&["main", "main/a", "main/a/b"], "main/.claims");
    let located = world.locate("main/a").unwrap();
    assert_eq!(world.worktree("main/a"), Some(world.at("main")));
    assert_eq!(located.why, Why::MainWorktree { root: world.at("main") });
    assert_eq!(located.why.to_string(), "in the main worktree of this git repository, for all its worktrees");
}

#[test]
fn a_repository_without_a_commit_has_it_at_its_root() {
    let world = World::new();
    world.git("", "init -q main");
    world.agree(&["main"], "main/.claims");
}

#[test]
fn linked_worktrees_share_the_main_ones() {
    let world = World::new();
    world.repository("main");
    world.folder("far");
    for path in ["nested/wt", "../beside", "../far/away"] {
        world.git("main", &format!("worktree add -q --detach {path}"));
    }
    world.folder("main/nested/wt/a");
    world.folder("beside/a/b");
    let everywhere =
        ["main", "main/nested", "main/nested/wt", "main/nested/wt/a", "beside", "beside/a/b", "far/away"];
    world.agree(&everywhere, "main/.claims");
    assert_eq!(world.worktree("beside/a/b"), Some(world.at("beside")));
    assert_eq!(world.worktree("main/nested/wt/a"), Some(world.at("main/nested/wt")));
}

#[test]
fn a_worktree_made_from_a_linked_one_shares_it_too() {
    let world = World::new();
    world.repository("main");
    world.git("main", "worktree add -q --detach ../one");
    world.git("one", "worktree add -q --detach ../two");
    world.agree(&["main", "one", "two"], "main/.claims");
}

#[test]
fn relative_links_lead_to_it() {
    let world = World::new();
    world.repository("main");
    world.git("main", "worktree add -q --detach ../beside");
    // What `git worktree add --relative-paths` writes, from git 2.48 on.
    fs::write(world.at("beside/.git"), "gitdir: ../main/.git/worktrees/beside\n").unwrap();
    fs::write(world.at("main/.git/worktrees/beside/gitdir"), "../../../../beside/.git\n").unwrap();
    world.agree(&["main", "beside"], "main/.claims");
    fs::rename(world.at("main"), world.at("moved")).unwrap();
    fs::write(world.at("beside/.git"), "gitdir: ../moved/.git/worktrees/beside\r\n").unwrap();
    fs::remove_dir(world.at("moved/.claims")).unwrap();
    world.agree(&["moved", "beside"], "moved/.claims");
}

#[test]
fn a_bare_repository_has_it_inside() {
    let world = World::new();
    world.repository("origin");
    world.git("", "clone -q --bare origin bare.git");
    world.git("bare.git", "worktree add -q ../wt main");
    world.git("bare.git", "worktree add -q --detach inside");
    world.folder("wt/a");
    let everywhere = ["bare.git", "bare.git/refs", "bare.git/worktrees/wt", "bare.git/inside", "wt", "wt/a"];
    world.agree(&everywhere, "bare.git/.claims");
    let located = world.locate("wt/a").unwrap();
    assert_eq!(located.why, Why::BareRepository { common: world.at("bare.git") });
    assert_eq!(world.worktree("wt/a"), Some(world.at("wt")));
    assert_eq!(world.worktree("bare.git"), None);
}

#[test]
fn a_hidden_bare_repository_with_worktrees_around_it_has_it_inside() {
    let world = World::new();
    world.repository("origin");
    world.folder("project");
    world.git("project", "clone -q --bare ../origin .bare");
    fs::write(world.at("project/.git"), "gitdir: ./.bare\n").unwrap();
    world.git("project", "worktree add -q main");
    world.git("project", "worktree add -q --detach other");
    world.agree(&["project", "project/.bare", "project/main", "project/other"], "project/.bare/.claims");
    assert_eq!(world.worktree("project"), None);
}

#[test]
fn a_bare_repository_named_dot_git_has_it_inside() {
    let world = World::new();
    world.repository("origin");
    world.git("", "clone -q --bare origin project/.git");
    world.git("project", "worktree add -q main");
    world.agree(&["project", "project/.git", "project/main"], "project/.git/.claims");
}

#[test]
fn settings_kept_for_each_worktree_are_found() {
    let world = World::new();
    world.git("", "init -q --bare project/.git");
    world.git("", "clone -q project/.git seed");
    world.git("seed", "commit -q --allow-empty -m one");
    world.git("seed", "push -q origin HEAD:main");
    world.git("project", "worktree add -q --detach wt");
    // Moves core.bare to `config.worktree`.
    world.git("project/wt", "sparse-checkout set a");
    let config = fs::read_to_string(world.at("project/.git/config")).unwrap();
    assert!(!config.contains("bare") && world.at("project/.git/config.worktree").exists(), "{config}");
    world.agree(&["project", "project/wt"], "project/.git/.claims");
}

#[test]
fn a_separate_git_folder_has_it_inside() {
    let world = World::new();
    world.git("", "init -q --separate-git-dir store main");
    world.git("main", "commit -q --allow-empty -m one");
    world.git("main", "worktree add -q --detach ../wt");
    world.agree(&["main", "wt", "store"], "store/.claims");
    let located = world.locate("main").unwrap();
    assert_eq!(located.why, Why::GitFolder { common: world.at("store") });
    assert_eq!(world.worktree("main"), Some(world.at("main")));
}

#[test]
fn a_git_folder_that_is_a_symbolic_link_counts_where_it_is() {
    let world = World::new();
    world.repository("main");
    fs::rename(world.at("main/.git"), world.at("store")).unwrap();
    symlink("../store", world.at("main/.git")).unwrap();
    world.git("main", "worktree add -q --detach ../wt");
    world.agree(&["main", "wt"], "store/.claims");
}

#[test]
fn a_submodule_has_its_own() {
    let world = World::new();
    world.repository("library");
    world.repository("super");
    world.git("super", "submodule --quiet add ../library sub");
    world.git("super", "commit -q -m sub");
    world.git("super/sub", "worktree add -q --detach ../../subwt");
    world.folder("super/sub/a");
    world.agree(&["super", "super/.git/modules"], "super/.claims");
    world.agree(&["super/sub", "super/sub/a", "super/.git/modules/sub", "subwt"], "super/sub/.claims");
    assert_eq!(world.worktree("super/sub/a"), Some(world.at("super/sub")));
    assert_eq!(world.worktree("subwt"), Some(world.at("subwt")));
    // Moves core.worktree to `config.worktree`.
    world.git("subwt", "sparse-checkout set a");
    assert!(!fs::read_to_string(world.at("super/.git/modules/sub/config")).unwrap().contains("worktree ="));
    assert_eq!(world.locate("subwt").unwrap().path, world.at("super/sub/.claims"));
    // A worktree of the outer one clones the submodule anew: another repository.
    world.git("super", "worktree add -q --detach ../superwt");
    world.git("superwt", "submodule --quiet update --init");
    assert_eq!(world.locate("superwt").unwrap().path, world.at("super/.claims"));
    assert_eq!(world.locate("superwt/sub").unwrap().path, world.at("superwt/sub/.claims"));
}

#[test]
fn a_main_worktree_named_by_the_configuration_has_it() {
    let world = World::new();
    world.repository("main");
    world.folder("files/meta/a");
    fs::rename(world.at("main/.git"), world.at("files/meta/.git")).unwrap();
    world.git("files/meta", "config core.worktree ../..");
    world.agree(&["files/meta", "files/meta/a", "files/meta/.git"], "files/.claims");
    assert_eq!(world.worktree("files/meta/a"), Some(world.at("files")));
    world.folder("files/meta/a/.claims");
    world.refused("files/meta/a", Code::AmbiguousStore, &["files/.claims", "files/meta/a/.claims"]);
}

#[test]
fn inside_the_git_folder_it_is_the_repositorys() {
    let world = World::new();
    world.repository("main");
    world.git("main", "worktree add -q --detach ../wt");
    let inside = ["main/.git", "main/.git/hooks", "main/.git/worktrees", "main/.git/worktrees/wt"];
    world.agree(&inside, "main/.claims");
    assert_eq!(world.worktree("main/.git/worktrees/wt"), None);
}

#[test]
fn a_moved_repository_is_found_again_once_repaired() {
    let world = World::new();
    world.repository("main");
    world.git("main", "worktree add -q --detach ../wt");
    fs::rename(world.at("main"), world.at("moved")).unwrap();
    world.agree(&["moved"], "moved/.claims");
    world.refused("wt", Code::NoStore, &["wt/.git"]);
    world.git("moved", "worktree repair");
    assert_eq!(world.locate("wt").unwrap().path, world.at("moved/.claims"));
}

#[test]
fn symbolic_links_do_not_lead_astray() {
    let world = World::new();
    world.repository("main");
    world.git("main", "worktree add -q --detach ../wt");
    world.folder("main/a/b");
    world.folder("elsewhere/.claims");
    symlink(world.at("main/a"), world.at("elsewhere/link")).unwrap();
    symlink(world.at("wt"), world.at("elsewhere/wt")).unwrap();
    world.agree(&["elsewhere/link", "elsewhere/link/b", "elsewhere/wt", "main"], "main/.claims");
    let located = world.locate("elsewhere/link/b/../..").unwrap();
    assert_eq!(located.path, world.at("main/.claims"));
    assert_eq!(world.worktree("elsewhere/link/b/../.."), Some(world.at("main")));
}

#[test]
fn a_repository_inside_another_has_its_own() {
    let world = World::new();
    world.repository("outer");
    world.folder("outer/.claims");
    world.repository("outer/inner");
    world.git("", "init -q --bare outer/fixture.git");
    world.agree(&["outer/inner"], "outer/inner/.claims");
    world.agree(&["outer/fixture.git", "outer/fixture.git/refs"], "outer/fixture.git/.claims");
    // Git passes over a `.git` folder that is none.
    world.folder("outer/empty/.git");
    assert_eq!(world.locate("outer/empty").unwrap().path, world.at("outer/.claims"));
}

#[test]
fn a_second_directory_is_refused() {
    let world = World::new();
    world.repository("main");
    world.git("main", "worktree add -q --detach ../beside");
    world.git("main", "worktree add -q --detach nested");
    world.folder("main/a/b");
    world.folder("main/a/.claims");
    world.folder("beside/.claims");
    for _ in ["not made yet", "made"] {
        world.refused("main/a", Code::AmbiguousStore, &["main/.claims", "main/a/.claims"]);
        world.refused("main/a/b", Code::AmbiguousStore, &["main/.claims", "main/a/.claims"]);
        world.refused("beside", Code::AmbiguousStore, &["main/.claims", "beside/.claims"]);
        let places = Places { argument: None, variable: None, cwd: &world.at("beside") };
        assert_eq!(locate_for_init(&places).unwrap_err().code(), Code::AmbiguousStore);
        // Neither lies between these and the root of their worktree.
        assert_eq!(world.locate("main").unwrap().path, world.at("main/.claims"));
        assert_eq!(world.locate("main/nested").unwrap().path, world.at("main/.claims"));
        world.folder("main/.claims");
    }
}

#[test]
fn what_lies_above_the_worktree_is_no_second_directory() {
    let world = World::new();
    world.folder(".claims");
    world.repository("main");
    world.git("main", "worktree add -q --detach nested");
    world.agree(&["main", "main/nested"], "main/.claims");
}

#[test]
fn another_name_of_the_same_directory_is_no_second_one() {
    let world = World::new();
    world.repository("main");
    world.git("main", "worktree add -q --detach ../beside");
    world.folder("main/.claims");
    world.folder("main/a");
    symlink("../.claims", world.at("main/a/.claims")).unwrap();
    symlink("../main/.claims", world.at("beside/.claims")).unwrap();
    for folder in ["main/a", "beside"] {
        assert_eq!(world.locate(folder).unwrap().path, world.at("main/.claims"));
    }
}

#[test]
fn inside_the_claim_directory_it_is_that_one() {
    let world = World::new();
    world.repository("main");
    world.git("", "init -q --bare bare.git");
    for home in ["main", "bare.git"] {
        world.folder(&format!("{home}/.claims/a/.claims"));
        for inside in [".claims", ".claims/a", ".claims/a/.claims"] {
            let located = world.locate(&format!("{home}/{inside}")).unwrap();
            assert_eq!(located.path, world.at(home).join(".claims"), "from {home}/{inside}");
        }
    }
}

#[test]
fn a_directory_beside_a_hidden_bare_repository_is_refused() {
    let world = World::new();
    world.git("", "init -q --bare project/.bare");
    fs::write(world.at("project/.git"), "gitdir: .bare").unwrap();
    world.folder("project/.claims");
    world.refused("project", Code::AmbiguousStore, &["project/.bare/.claims", "project/.claims"]);
}

#[test]
fn a_broken_git_file_is_named_and_nothing_else_is_taken() {
    let world = World::new();
    world.repository("outer");
    world.folder("outer/.claims");
    world.folder("outer/wt/a");
    world.folder("outer/no-repository");
    let file = world.at("outer/wt/.git");
    let texts = [
        "gitdir: /nowhere\n",
        "gitdir: ../no-repository",
        "gitdir: ",
        "",
        "?",
        "gitdir: a\0b",
        "gitdir: .git",
    ];
    for text in texts {
        fs::write(&file, text).unwrap();
        world.refused("outer/wt/a", Code::NoStore, &["outer/wt/.git"]);
        // Git sees no repository there either.
        assert!(!world.try_git("outer/wt/a", "rev-parse --git-dir").status.success(), "{text:?}");
    }
    fs::write(&file, [b"gitdir: /".as_slice(), &[0xff, b'\n']].concat()).unwrap();
    world.refused("outer/wt", Code::NoStore, &["outer/wt/.git"]);
    fs::write(&file, vec![b'x'; (1 << 20) + 1]).unwrap();
    world.refused("outer/wt", Code::NoStore, &["outer/wt/.git"]);
    fs::remove_file(&file).unwrap();
    symlink("nowhere", &file).unwrap();
    world.refused("outer/wt", Code::NoStore, &["outer/wt/.git"]);
    symlink("/dev/null", world.at("outer/no-repository/.git")).unwrap();
    world.refused("outer/no-repository", Code::NoStore, &["outer/no-repository/.git"]);
}

#[test]
fn a_pruned_worktree_is_refused() {
    let world = World::new();
    world.repository("main");
    world.git("main", "worktree add -q --detach ../wt");
    fs::remove_dir_all(world.at("main/.git/worktrees/wt")).unwrap();
    world.refused("wt", Code::NoStore, &["wt/.git"]);
}

#[test]
fn a_configuration_that_cannot_be_read_is_named() {
    let world = World::new();
    world.repository("main");
    for text in ["[core]\n\tbare = maybe\n", "[core\n", "[core]\nworktree\n"] {
        fs::write(world.at("main/.git/config"), text).unwrap();
        world.refused("main", Code::NoStore, &["main/.git/config"]);
        assert!(!world.try_git("main", "rev-parse --git-dir").status.success(), "{text:?}");
    }
    fs::write(world.at("main/.git/config"), "[core]\nworktree = ../gone\n").unwrap();
    world.refused("main", Code::NoStore, &["main/.git"]);
    fs::remove_file(world.at("main/.git/config")).unwrap();
    world.agree(&["main"], "main/.claims");
}

#[test]
fn outside_git_the_nearest_one_upwards_counts() {
    let world = World::new();
    world.folder("a/.claims/x");
    world.folder("a/b/.claims");
    world.folder("a/b/c/d");
    world.folder("a/e");
    for (cwd, expected) in [("a/b/c/d", "a/b"), ("a/b", "a/b"), ("a/e", "a"), ("a/.claims/x", "a")] {
        let located = world.locate(cwd).unwrap();
        assert_eq!(located.path, world.at(expected).join(".claims"), "from {cwd}");
        assert_eq!((located.why, located.exists, world.worktree(cwd)), (Why::Ancestor, true, None));
    }
    assert_eq!(world.init("a/e").path, world.at("a/.claims"));
}

#[test]
fn outside_git_with_none_it_asks_for_init() {
    let world = World::new();
    world.folder("a");
    world.refused("a", Code::NoStore, &["a"]);
    assert!(world.locate("a").unwrap_err().next_step().unwrap().contains("`claim init`"));
    let located = world.init("a");
    assert_eq!(
        (located.path, located.why, located.exists),
        (world.at("a/.claims"), Why::CurrentFolder, false)
    );
    assert!(!world.at("a/.claims").exists());
    world.refused("gone", Code::NoStore, &["gone"]);
}

#[test]
fn what_is_no_directory_is_no_claim_directory() {
    let world = World::new();
    world.folder(".claims");
    world.folder("a");
    world.repository("main");
    for folder in ["a", "main"] {
        fs::write(world.at(folder).join(".claims"), "").unwrap();
        world.refused(folder, Code::NoStore, &[&format!("{folder}/.claims")]);
        fs::remove_file(world.at(folder).join(".claims")).unwrap();
        symlink("nowhere", world.at(folder).join(".claims")).unwrap();
        world.refused(folder, Code::NoStore, &[&format!("{folder}/.claims")]);
    }
}

fn named(world: &World, argument: Option<&str>, variable: Option<&str>) -> Result<Located, Error> {
    let argument = argument.map(Path::new);
    locate(&Places { argument, variable: variable.map(OsStr::new), cwd: &world.at("main") })
}

#[test]
fn an_argument_beats_the_variable_and_that_beats_the_repository() {
    let world = World::new();
    world.repository("main");
    world.folder("main/.claims");
    world.folder("one");
    let located = named(&world, Some("../one"), Some("../two")).unwrap();
    assert_eq!((located.path, located.why, located.exists), (world.at("one"), Why::Argument, true));
    assert_eq!(world.worktree("main"), Some(world.at("main")));
    let located = named(&world, None, Some("../two")).unwrap();
    assert_eq!((located.path, located.why, located.exists), (world.at("two"), Why::Variable, false));
    assert!(!world.at("two").exists());
    let located = named(&world, None, Some("")).unwrap();
    assert_eq!(located.path, world.at("main/.claims"));
}

#[test]
fn a_named_directory_is_taken_from_the_current_folder() {
    let world = World::new();
    world.folder("main");
    world.folder("above/main");
    symlink("main", world.at("link")).unwrap();
    for (argument, expected) in
        [(".", "main"), ("new", "main/new"), ("./new/", "main/new"), ("../link/x", "main/x")]
    {
        let expected = world.root.join(expected).components().collect::<PathBuf>();
        assert_eq!(named(&world, Some(argument), None).unwrap().path, expected, "{argument}");
    }
    let absolute = world.at("other");
    assert_eq!(named(&world, absolute.to_str(), None).unwrap().path, absolute);
}

#[test]
fn a_named_folder_with_other_things_in_it_is_refused() {
    let world = World::new();
    world.repository("main");
    for argument in [".", ".."] {
        let error = named(&world, Some(argument), None).unwrap_err();
        refused(&error, Code::NoStore);
    }
    // What may be one: a finished one whatever lies beside, records alone, an empty folder, any `.claims`.
    world.folder("main/finished/.store");
    fs::write(world.at("main/finished/other"), "").unwrap();
    fs::write(world.folder("main/records").join("n.claim"), "").unwrap();
    world.folder("main/empty");
    fs::write(world.folder("main/.claims").join("other"), "").unwrap();
    for argument in ["finished", "records", "empty", ".claims"] {
        assert_eq!(named(&world, Some(argument), None).unwrap().path, world.at("main").join(argument));
    }
}

#[test]
fn a_named_directory_ends_the_doubt() {
    let world = World::new();
    world.repository("main");
    world.folder("main/.claims");
    world.folder("main/a/.claims");
    fs::write(world.folder("main/wt").join(".git"), "gitdir: /nowhere").unwrap();
    for cwd in ["main/a", "main/wt"] {
        let places =
            Places { argument: Some(&world.at("main/.claims")), variable: None, cwd: &world.at(cwd) };
        assert_eq!(locate(&places).unwrap().path, world.at("main/.claims"), "from {cwd}");
    }
}

#[test]
fn a_named_directory_needs_its_parent() {
    let world = World::new();
    world.folder("main");
    for argument in ["gone/it's/claims", "gone/.."] {
        let error = named(&world, Some(argument), None).unwrap_err();
        refused(&error, Code::NoStore);
        assert!(error.next_step().unwrap().contains("`claim init --dir "), "{error}");
    }
    let hint = named(&world, None, Some("gone/it's/claims")).unwrap_err();
    assert!(hint.next_step().unwrap().contains(r"`claim init --dir 'gone/it'\''s/claims'`"));
    let places =
        Places { argument: Some(Path::new("gone/x/claims")), variable: None, cwd: &world.at("main") };
    let located = locate_for_init(&places).unwrap();
    assert_eq!((located.path, located.exists), (world.at("main/gone/x/claims"), false));
    assert!(!world.at("main/gone").exists());
}

#[test]
fn a_named_file_or_address_is_refused() {
    let world = World::new();
    world.folder("main");
    fs::write(world.at("main/file"), "").unwrap();
    symlink("nowhere", world.at("main/link")).unwrap();
    for argument in ["file", "file/x", "file/x/y", "link"] {
        refused(&named(&world, Some(argument), None).unwrap_err(), Code::NoStore);
        refused(&named(&world, None, Some(argument)).unwrap_err(), Code::NoStore);
    }
    // The first has no prefix, in a build that could use one.
    for address in ["etcd://user:secret@host:2379", "a+b://", "FILE:///x"] {
        for error in [named(&world, Some(address), None), named(&world, None, Some(address))] {
            let error = error.unwrap_err();
            assert_eq!(error.code(), Code::Usage, "{address}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
    assert_eq!(named(&world, Some(""), None).unwrap_err().code(), Code::Usage);
    assert_eq!(named(&world, Some("a:b"), None).unwrap().path, world.at("main/a:b"));
}

/// The owner's name and source with these variables set.
fn owned(argument: Option<&str>, variables: &[(&str, &str)]) -> Result<(String, OwnerSource), Error> {
    let env = |wanted: &str| {
        variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
    };
    let cwd = Path::new("/x/folder");
    owner(argument, &env, "host", &|| None, cwd).map(|owner| (owner.name, owner.source))
}

#[test]
fn the_owner_is_the_first_that_is_named() {
    let all = [
        ("CLAIM_OWNER", "own"),
        ("CLAUDE_CODE_SESSION_ID", "claude"),
        ("CODEX_THREAD_ID", "codex"),
        ("USER", "user"),
        ("LOGNAME", "login"),
    ];
    let claude = OwnerSource::Session { variable: "CLAUDE_CODE_SESSION_ID" };
    let codex = OwnerSource::Session { variable: "CODEX_THREAD_ID" };
    let expected = [
        ("own", OwnerSource::Variable),
        ("claude", claude),
        ("codex", codex),
        ("user@host:folder", OwnerSource::Place),
        ("login@host:folder", OwnerSource::Place),
    ];
    assert_eq!(owned(Some("me"), &all).unwrap(), ("me".into(), OwnerSource::Argument));
    for (skip, (name, source)) in expected.into_iter().enumerate() {
        assert_eq!(owned(None, &all[skip..]).unwrap(), (name.to_owned(), source));
        // Empty counts as unset.
        let mut emptied = all;
        emptied[..skip].iter_mut().for_each(|variable| variable.1 = "");
        assert_eq!(owned(None, &emptied).unwrap(), (name.to_owned(), source));
    }
    let (name, _) = owned(None, &[]).unwrap();
    let (uid, rest) = name.split_once('@').unwrap();
    assert!(uid.parse::<u32>().is_ok() && rest == "host:folder", "{name}");
    assert_eq!(codex.to_string(), "the agent's session in CODEX_THREAD_ID");
}

#[test]
fn the_owner_names_the_worktree() {
    let env = |name: &str| (name == "USER").then(|| "u".to_owned());
    let name = |worktree: Option<&str>, cwd: &str| {
        owner(None, &env, "h", &|| worktree.map(PathBuf::from), Path::new(cwd)).unwrap().name
    };
    assert_eq!(name(Some("/r/tree"), "/r/tree/src"), "u@h:tree");
    assert_eq!(name(None, "/r/tree/src"), "u@h:src");
    assert_eq!(name(None, "/"), "u@h:/");
}

#[test]
fn an_owner_is_kept_exactly_or_refused() {
    let odd = " a\nb\u{1b}[31m\u{e4}\u{202e}/.. ";
    assert_eq!(owned(Some(odd), &[]).unwrap().0, odd);
    assert_eq!(owned(None, &[("CLAIM_OWNER", odd)]).unwrap().0, odd);
    let (longest, longer) = ("\u{e4}".repeat(128), "x".repeat(257));
    assert_eq!(owned(Some(&longest), &[]).unwrap().0, longest);
    let refusals = [
        owned(Some(""), &[("CLAIM_OWNER", "own")]),
        owned(Some(&longer), &[]),
        owned(None, &[("CLAIM_OWNER", &longer)]),
        owned(None, &[("CODEX_THREAD_ID", &longer)]),
    ];
    for refusal in refusals {
        assert_eq!(refusal.unwrap_err().code(), Code::Usage);
    }
}

#[test]
fn a_directory_that_is_being_made_is_found_or_not_there_yet() {
    let world = World::new();
    let named = world.at(".claims");
    let places = Places { argument: Some(&named), variable: None, cwd: &world.root };
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| {
            for _ in 0..20_000 {
                fs::create_dir(&named).unwrap();
                fs::remove_dir(&named).unwrap();
            }
        });
        while !maker.is_finished() {
            locate(&places).unwrap();
        }
    });
}
