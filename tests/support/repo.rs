//! A repository of the real git with a second worktree, whose claims are where the repository says.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Claimed, Said, World, said};

/// A repository `main` with a worktree `side`; in both of them are `src/a.rs` and `src/b.rs`.
pub struct Repo {
    pub world: World,
}

impl Repo {
    pub fn new() -> Repo {
        let repo = Repo { world: World::new() };
        repo.git("", &["init", "-q", "-b", "main", "main"]);
        repo.write("main/src/a.rs", "a\n");
        repo.write("main/src/b.rs", "b\n");
        repo.git("main", &["add", "."]);
        repo.git("main", &["commit", "-q", "-m", "one"]);
        repo.git("main", &["worktree", "add", "-q", "-b", "side", "../side"]);
        repo
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.world.root.join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    pub fn program(&self, path: &str, text: &str) {
        self.write(path, text);
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.at(path)).ok()
    }

    /// `claim` in `folder`, as `owner`.
    pub fn claim(&self, folder: &str, owner: &str, arguments: &[&str]) -> Command {
        let mut command = self.world.claim();
        command
            .args(arguments)
            .current_dir(self.at(folder))
            .env("CLAIM_OWNER", owner)
            .env_remove("CLAIMS_DIR");
        command
    }

    #[track_caller]
    pub fn say(&self, folder: &str, owner: &str, line: &str) -> Said {
        said(&mut self.claim(folder, owner, &line.split(' ').collect::<Vec<_>>()))
    }

    /// Succeeds, whoever says it.
    #[track_caller]
    pub fn yes(&self, folder: &str, line: &str) -> Said {
        let said = self.say(folder, "", line);
        assert_eq!(said.exit, 0, "{line}: {said:?}");
        said
    }

    /// Takes a node; its token.
    #[track_caller]
    pub fn take(&self, folder: &str, owner: &str, line: &str) -> String {
        self.say(folder, owner, &format!("acquire {line} --json")).expect::<Claimed>(0).token
    }

    /// git as the owner `bob`, with the binary where hooks find it.
    pub fn git_command(&self, folder: &str, arguments: &[&str]) -> Command {
        let bin = Path::new(env!("CARGO_BIN_EXE_claim")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut command = self.world.clean("git");
        command
            .args(["-c", "user.name=t", "-c", "user.email=t@t"])
            .args(arguments)
            .current_dir(self.at(folder));
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PATH", path)
            .env_remove("CLAIMS_DIR")
            .env("CLAIM_OWNER", "bob");
        command
    }

    #[track_caller]
    pub fn git(&self, folder: &str, arguments: &[&str]) -> Said {
        let said = said(&mut self.git_command(folder, arguments));
        assert_eq!(said.exit, 0, "git {arguments:?}: {said:?}");
        said
    }

    #[track_caller]
    pub fn no_git(&self, folder: &str, arguments: &[&str]) -> Said {
        let said = said(&mut self.git_command(folder, arguments));
        assert_ne!(said.exit, 0, "git {arguments:?}: {said:?}");
        said
    }
}
