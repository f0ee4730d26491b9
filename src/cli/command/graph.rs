//! `claim graph`. It writes nothing and makes no directory.

use std::collections::{BTreeSet, HashMap};

use claimdir::domain::Node;
use claimdir::{Detail, Name, NodeId, Refusal, Result, Roots, Scope, Unreadable};
use serde_json::{Value, json};

use super::list::{unreadable_json, with_unreadable};
use super::look::now;
use crate::cli::args::{self, Format};
use crate::cli::context::Context;
use crate::cli::diagram::{Drawn, dot, mermaid};
use crate::cli::report::Report;

/// A task, as far as it is drawn.
struct Vertex {
    id: NodeId,
    state: &'static str,
    of_task: Option<OfTask>,
    is_wanted: bool,
}

struct OfTask {
    title: Option<String>,
    queue: Name,
    project: Option<Name>,
    priority: u8,
    after: Vec<NodeId>,
}

impl Vertex {
    fn of(node: Node, state: &'static str, is_wanted: bool) -> Vertex {
        let of_task = node.task.map(|task| OfTask {
            title: task.title,
            queue: task.queue,
            project: task.project,
            priority: task.priority,
            after: task.after,
        });
        Vertex { id: node.id, state, of_task, is_wanted }
    }

    fn after(&self) -> &[NodeId] {
        self.of_task.as_ref().map_or(&[], |task| &task.after)
    }

    fn json(&self) -> Value {
        let task = self.of_task.as_ref();
        json!({
            "id": self.id.as_str(),
            "state": self.state,
            "title": task.and_then(|task| task.title.as_ref()),
            "queue": task.map(|task| task.queue.as_str()),
            "project": task.and_then(|task| task.project.as_ref()).map(Name::as_str),
            "priority": task.map(|task| task.priority),
        })
    }

    fn to_draw(&self) -> Drawn<'_> {
        let title = self.of_task.as_ref().and_then(|task| task.title.as_deref());
        Drawn { id: self.id.as_str(), title, state: self.state }
    }
}

pub(crate) fn graph(args: args::Graph, context: &Context) -> Result<Report> {
    args.filter.check()?;
    let directory = context.directory()?;
    let of = args.id.as_ref().map(|id| context.id(id)).transpose()?;
    let scope = context.scope()?;
    let in_scope = |node: &Node| of.is_some() || scope.is_none() || Scope::of(&node.id) == scope;
    let owner = context.global.owner.as_deref();
    let roots = Roots::default();
    let seen = directory.survey(None, Detail::Brief, |node| {
        let is_named = of.as_ref() == Some(&node.id);
        if node.task.is_none() && !is_named {
            return None;
        }
        let state = now(&directory, &node, &roots).state;
        let mine = owner.is_none_or(|owner| node.claim().is_some_and(|claim| claim.owner == owner));
        let is_wanted = in_scope(&node) && mine && args.filter.wants(&node) && args.filter.wants_state(state);
        Some(Vertex::of(node, state.name(), is_wanted || is_named))
    })?;
    let mut vertices = seen.found;
    if let Some(of) = &of {
        let Some(at) = vertices.iter().position(|vertex| vertex.id == *of) else {
            return Ok(with_unreadable(Report::refused(&Refusal::not_found(of)), &seen.unreadable));
        };
        let near = around(at, &vertices);
        vertices.iter_mut().enumerate().for_each(|(at, vertex)| vertex.is_wanted &= near.contains(&at));
    }
    add_unknown(&mut vertices, &seen.unreadable);
    vertices.retain(|vertex| vertex.is_wanted);
    let edges = edges(&vertices);
    let boxes: Vec<Drawn<'_>> = vertices.iter().map(Vertex::to_draw).collect();
    let lines = match args.format {
        Format::Mermaid => mermaid(&boxes, &edges),
        Format::Dot => dot(&boxes, &edges),
    };
    let named = |at: usize| vertices.get(at).map(|vertex| vertex.id.as_str());
    let edges: Vec<Value> =
        edges.iter().map(|(from, to)| json!({"from": named(*from), "to": named(*to)})).collect();
    let fields = json!({
        "nodes": vertices.iter().map(Vertex::json).collect::<Vec<_>>(),
        "edges": edges,
        "unreadable": unreadable_json(&seen.unreadable),
    });
    Ok(with_unreadable(Report::yes(String::new(), fields).lines(lines), &seen.unreadable))
}

/// Tasks that wanted ones wait for and of which there is no record, or none that can be read.
fn add_unknown(vertices: &mut Vec<Vertex>, unreadable: &[Unreadable]) {
    let known = places(vertices);
    let wanted = vertices.iter().filter(|vertex| vertex.is_wanted);
    let unknown: BTreeSet<NodeId> =
        wanted.flat_map(Vertex::after).filter(|on| !known.contains_key(on)).cloned().collect();
    vertices.extend(unknown.into_iter().map(|id| {
        let is_there = unreadable.iter().any(|bad| bad.id == id);
        let state = if is_there { "unreadable" } else { "missing" };
        Vertex { id, state, of_task: None, is_wanted: true }
    }));
}

fn places(vertices: &[Vertex]) -> HashMap<&NodeId, usize> {
    vertices.iter().enumerate().map(|(at, vertex)| (&vertex.id, at)).collect()
}

/// From what must be done first to what waits for it, by their places.
fn edges(vertices: &[Vertex]) -> Vec<(usize, usize)> {
    let known = places(vertices);
    let of = |(to, vertex): (usize, &Vertex)| {
        let after = vertex.after().iter().filter_map(|on| known.get(on));
        after.map(|from| (*from, to)).collect::<Vec<_>>()
    };
    vertices.iter().enumerate().flat_map(of).collect()
}

/// The places of all that `at` depends on, and of all that depends on it.
fn around(at: usize, vertices: &[Vertex]) -> BTreeSet<usize> {
    let (mut up, mut down) = (HashMap::<usize, Vec<usize>>::new(), HashMap::<usize, Vec<usize>>::new());
    for (from, to) in edges(vertices) {
        up.entry(to).or_default().push(from);
        down.entry(from).or_default().push(to);
    }
    let mut found = reached(at, &up);
    found.extend(reached(at, &down));
    found
}

fn reached(from: usize, next: &HashMap<usize, Vec<usize>>) -> BTreeSet<usize> {
    let (mut found, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(at) = left.pop() {
        if found.insert(at) {
            left.extend(next.get(&at).into_iter().flatten());
        }
    }
    found
}
