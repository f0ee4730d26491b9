//! Whose a path is.

use std::cell::OnceCell;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use claimdir::domain::{PathClash, Reason};
use claimdir::locate::{Places, Tree, Why, locate};
use claimdir::{Code, Directory, NodeId, Refusal, Renewal, RepoPath, Reserved, Result, Token};

use crate::cli::context::Context;
use crate::cli::text::harmless;

/// What makes a claim one's own.
enum Mine {
    /// It holds this token.
    Token(Token),
    /// No token is shown: it has this owner.
    Owner(String),
}

/// One who knows the claim directory, and who asks.
pub(crate) struct Judge {
    directory: Directory,
    tree: Tree,
    place: PathBuf,
    /// Is the place the repository's own, so that another of its worktrees comes to it too?
    by_repository: bool,
    mine: Mine,
    reserved: OnceCell<Vec<Reserved>>,
}

/// What was found.
#[derive(Default)]
pub(crate) struct Verdict {
    /// What another has reserved: each path once.
    pub(crate) clashes: Vec<Refusal>,
    /// What can't be decided.
    pub(crate) notes: Vec<String>,
}

impl Judge {
    /// `None`: no claim directory is used here. `session`: the agent's, where it says so itself.
    pub(crate) fn open(
        context: &Context,
        token: Option<Token>,
        session: Option<&str>,
    ) -> Result<Option<Judge>> {
        let located = match context.located() {
            Ok(located) if located.exists => located,
            Ok(_) => return Ok(None),
            Err(error) if error.code() == Code::NoStore => return Ok(None),
            Err(error) => return Err(error),
        };
        let directory = context.directory()?;
        let mine = match token {
            Some(token) => Mine::Token(token),
            None => Mine::Owner(context.owner_in(&directory, session)?.name),
        };
        let by_repository = !matches!(located.why, Why::Argument | Why::Variable | Why::Ancestor);
        let place = located.path.clone();
        Ok(Some(Judge {
            directory,
            tree: context.tree()?,
            place,
            by_repository,
            mine,
            reserved: OnceCell::new(),
        }))
    }

    /// A file as all worktrees know it; `None`: it is in none of this repository's.
    pub(crate) fn file(&self, name: &OsStr) -> Option<RepoPath> {
        self.tree.file(name).or_else(|| self.elsewhere(name))
    }

    /// A file by its name from the worktree's root.
    pub(crate) fn file_of_tree(&self, name: &OsStr) -> Option<RepoPath> {
        self.tree.file(self.tree.root().join(name).as_os_str())
    }

    /// A file in another worktree of the same repository.
    fn elsewhere(&self, name: &OsStr) -> Option<RepoPath> {
        let cwd = Context::cwd().ok()?;
        let full = cwd.join(name);
        let folder = full.ancestors().skip(1).find(|folder| folder.is_dir())?;
        let located = locate(&Places { argument: None, variable: None, cwd: folder }).ok()?;
        if !self.by_repository || located.path != self.place {
            return None;
        }
        Tree::around(&located, folder).ok()?.file(full.as_os_str())
    }

    /// What of `paths` another's live claim has.
    pub(crate) fn judge(&self, paths: &[RepoPath]) -> Result<Verdict> {
        let mut verdict = Verdict::default();
        if paths.is_empty() {
            return Ok(verdict);
        }
        let mut others = Vec::new();
        for reserved in self.reserved()? {
            if !paths.iter().any(|path| path.clashes(&reserved.path)) {
                continue;
            }
            match &reserved.holder {
                None => verdict.notes.push(format!(
                    "claim guard: {} is reserved with {}, whose record can't be read; allowed",
                    harmless(reserved.path.as_str()),
                    harmless(reserved.node.as_str())
                )),
                Some(_) if self.is_mine(reserved)? => {}
                Some(_) => others.push(reserved),
            }
        }
        for path in paths {
            let clash = others.iter().find(|reserved| path.clashes(&reserved.path));
            verdict.clashes.extend(clash.map(|reserved| refusal(path, reserved)));
        }
        Ok(verdict)
    }

    fn reserved(&self) -> Result<&[Reserved]> {
        if let Some(reserved) = self.reserved.get() {
            return Ok(reserved);
        }
        let reserved = self.directory.reserved()?;
        Ok(self.reserved.get_or_init(|| reserved))
    }

    fn is_mine(&self, reserved: &Reserved) -> Result<bool> {
        Ok(match &self.mine {
            Mine::Token(token) => self.directory.check(&reserved.node, token)?.is_ok(),
            Mine::Owner(owner) => reserved.holder.as_ref().is_some_and(|holder| holder.owner == *owner),
        })
    }

    /// Why the claim in `CLAIM_ID` and `CLAIM_TOKEN` is lost, if it is.
    pub(crate) fn lost(&self, context: &Context) -> Result<Option<Refusal>> {
        let Some((id, token)) = shown_claim(context)? else { return Ok(None) };
        Ok(self.directory.check(&id, &token)?.err().filter(|refusal| refusal.code().exit() == 3))
    }

    /// Renews that claim if a third of its lease has passed since it was taken or renewed. What was found lost is said.
    pub(crate) fn renew(&self, context: &Context) -> Result<Option<Refusal>> {
        let Some((id, token)) = shown_claim(context)? else { return Ok(None) };
        let checked = match self.directory.check(&id, &token)? {
            Ok(checked) => checked,
            Err(lost) => return Ok(Some(lost)),
        };
        let lease_ms = checked.node.claim().map_or(0, |claim| claim.lease_ms);
        match checked.remaining_ms {
            Some(left) if left <= lease_ms - lease_ms / 3 => {
                Ok(self.directory.renew(&id, &token, &Renewal::default())?.err())
            }
            _ => Ok(None),
        }
    }
}

fn refusal(path: &RepoPath, by: &Reserved) -> Refusal {
    let generation = by.holder.as_ref().map_or(0, |holder| holder.generation);
    let clash = PathClash {
        path: path.clone(),
        reserved: by.path.clone(),
        node: by.node.clone(),
        holder: by.holder.clone(),
    };
    Refusal { id: by.node.clone(), version: 0, generation, reason: Reason::PathClash(Box::new(clash)) }
}

/// The claim that this process works under, if its variables say so.
fn shown_claim(context: &Context) -> Result<Option<(NodeId, Token)>> {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(id), Some(token)) = (set("CLAIM_ID"), set("CLAIM_TOKEN")) else { return Ok(None) };
    Ok(Some((context.id(&id)?, Token::shown(token))))
}

/// The token in `CLAIM_TOKEN`.
pub(crate) fn shown_token() -> Option<Token> {
    env::var("CLAIM_TOKEN").ok().filter(|token| !token.is_empty()).map(Token::shown)
}

/// Goes where the call was made from, if there is such a folder.
pub(crate) fn go(folder: Option<&str>) {
    if let Some(folder) = folder.map(Path::new).filter(|folder| folder.is_absolute()) {
        let _ = env::set_current_dir(folder);
    }
}
