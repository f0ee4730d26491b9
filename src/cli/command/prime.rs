//! `claim prime`.

use std::path::Path;

use claimdir::Result;
use serde_json::json;

use crate::cli::args::{self, Agent};
use crate::cli::bounded::bounded;
use crate::cli::context::Context;
use crate::cli::guard::{call, judge};
use crate::cli::prime::state::State;
use crate::cli::prime::words;
use crate::cli::report::Report;
use crate::cli::text::harmless;

pub(crate) fn run(args: args::Prime, context: &Context) -> Result<Report> {
    let role = args.role;
    let unknown = move |why: &str| {
        let text = words::rules(role).to_owned();
        told(&text, json!({"role": role.name(), "text": text}))
            .note(format!("claim prime: the state is not known: {}", harmless(why)))
    };
    let late = move || unknown("it could not be read within a second");
    Ok(bounded(context, late, move |context, turn| {
        let session = args.hook.and_then(|Agent::ClaudeCode| {
            let (session, folder) = call::caller(&call::told_on_stdin().ok()?);
            if let Some(folder) = folder {
                judge::go(Path::new(&folder));
            }
            session
        });
        let report = match State::read(context, session.as_deref()) {
            Ok(Some(state)) => {
                let text = words::text(&state, role);
                told(&text, json!({"role": role.name(), "text": text})).and_fields(state.json())
            }
            Ok(None) => {
                Report::yes(String::new(), json!({"role": role.name(), "text": ""})).lines(Vec::new())
            }
            Err(error) => unknown(&error.to_string()),
        };
        turn.answer(context, report);
    }))
}

fn told(text: &str, fields: serde_json::Value) -> Report {
    Report::yes(String::new(), fields).lines(text.lines().map(str::to_owned).collect())
}
