//! Whose a path is.

use std::cell::OnceCell;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use claimdir::domain::{PathClash, Reason};
use claimdir::locate::{Located, Places, Tree, locate};
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
    mine: Mine,
    reserved: OnceCell<Vec<Reserved>>,
}

/// A file as it was named, and where that leads.
struct Named {
    full: PathBuf,
    real: PathBuf,
}

/// Files, and who judges them.
pub(crate) struct Case {
    pub(crate) judge: Judge,
    pub(crate) paths: Vec<RepoPath>,
    /// Is it the directory of where the question is asked from?
    pub(crate) is_here: bool,
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
        let place = located.path.clone();
        Ok(Some(Judge { directory, tree: context.tree()?, place, mine, reserved: OnceCell::new() }))
    }

    /// A file as all worktrees know it, by its name and by where links lead; none: it is in none of this repository's.
    fn paths(&self, named: &Named) -> Vec<RepoPath> {
        let path = |name: &Path| self.tree.file(name.as_os_str()).or_else(|| self.elsewhere(name));
        let mut paths: Vec<RepoPath> = path(&named.full).into_iter().collect();
        paths.extend(path(&named.real).filter(|real| !paths.contains(real)));
        paths
    }

    /// A file by its name from the worktree's root.
    pub(crate) fn file_of_tree(&self, name: &OsStr) -> Option<RepoPath> {
        self.tree.file(self.tree.root().join(name).as_os_str())
    }

    /// A file in another worktree of the same repository: who asks there, and has named no directory, comes to the same one.
    fn elsewhere(&self, full: &Path) -> Option<RepoPath> {
        let folder = above(full)?;
        let there = unnamed(folder)?;
        let is_ours = || unnamed(self.tree.root()).is_some_and(|here| here.path == there.path);
        if there.path != self.place && !is_ours() {
            return None;
        }
        Tree::around(&there, folder).ok()?.file(full.as_os_str())
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

/// Who judges `names`, which are relative to the current folder: the directory that is used here, and for files outside of
/// its repository that of their own, unless one was named, which then is the only one. Empty: no claim directory is used.
/// `through`: what is written is where a link leads, and not the link.
pub(crate) fn cases(
    context: &Context,
    token: Option<Token>,
    session: Option<&str>,
    names: &[OsString],
    through: bool,
) -> Result<Vec<Case>> {
    let cwd = Context::cwd()?;
    let mut left: Vec<Named> = names.iter().map(|name| Named::of(cwd.join(name), through)).collect();
    let mut cases = Vec::new();
    let is_named = context.global.dir.is_some() || env::var_os("CLAIMS_DIR").is_some_and(|it| !it.is_empty());
    if let Some(judge) = Judge::open(context, token.clone(), session)? {
        cases.push(Case::of(judge, &mut left, true));
    }
    // The token is that of a claim here, if there are claims here.
    let token = token.filter(|_| cases.is_empty());
    while let Some(first) = left.pop().filter(|_| !is_named) {
        let Some(folder) = above(&first.full).map(Path::to_path_buf) else { continue };
        left.push(first);
        let known = left.len();
        go(&folder);
        if let Some(judge) = Judge::open(&Context::new(context.global.clone()), token.clone(), session)? {
            cases.push(Case::of(judge, &mut left, false));
        }
        // Nobody's: of no repository, or of one without claims.
        if left.len() == known {
            left.pop();
        }
    }
    Ok(cases)
}

impl Named {
    fn of(full: PathBuf, through: bool) -> Named {
        let whole = Some(&full).filter(|_| through).and_then(|full| fs::canonicalize(full).ok());
        let real = whole.or_else(|| {
            let folder = above(&full)?;
            Some(fs::canonicalize(folder).ok()?.join(full.strip_prefix(folder).ok()?))
        });
        Named { real: real.unwrap_or_else(|| full.clone()), full }
    }
}

impl Case {
    /// Takes what `judge` knows out of `left`.
    fn of(judge: Judge, left: &mut Vec<Named>, is_here: bool) -> Case {
        let mut paths = Vec::new();
        left.retain(|named| {
            let found = judge.paths(named);
            let is_unknown = found.is_empty();
            paths.extend(found);
            is_unknown
        });
        Case { judge, paths, is_here }
    }

    pub(crate) fn judged(&self) -> Result<Verdict> {
        self.judge.judge(&self.paths)
    }
}

/// The nearest folder above `full` that is there.
fn above(full: &Path) -> Option<&Path> {
    full.ancestors().skip(1).find(|folder| folder.is_dir())
}

/// The claim directory of who is in `folder` and names none.
fn unnamed(folder: &Path) -> Option<Located> {
    locate(&Places { argument: None, variable: None, cwd: folder }).ok()
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

/// Goes to `folder`, if it is there: what is asked for next is asked from there.
pub(crate) fn go(folder: &Path) {
    if folder.is_absolute() {
        let _ = env::set_current_dir(folder);
    }
}
