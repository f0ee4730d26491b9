//! `claim mcp`: the commands as tools of an agent that speaks the Model Context Protocol.
//!
//! ```text
//! wire (lines <-> messages)  ->  server (who asks what)  ->  call (a tool is a command)  ->  command/*
//!                                       |                       |
//!                                       +->  session  <---------+   what this server holds, and for which call
//!                                              ^
//!                                            keeper (renews)
//! ```
//!
//! A tool's answer is its command's JSON answer with the exit code. What is beside that is the session's:
//!
//! - The server knows the tokens of the claims that it took, so the agent may leave them out.
//! - Those claims are bound to the server's process: when the agent dies, its server does, and others take over at once. A
//!   claim with a receipt is not, for who has the key may come back for it, to another server.
//! - They are renewed while the agent is there and has called within the time of `--keep`, so that one that thinks for long
//!   loses nothing, and one that hangs does not hold its nodes for ever.
//! - A claim that was lost is told of once, with the next answer, whichever that is.
//! - A call that is called off leaves no claim that nobody knows of. Under the session's one lock a claim is either handed
//!   over to a call that still stands, or it is given back; and if the word comes after the answer, which the agent then throws away,
//!   it is given back then. With a receipt it stays, unrenewed, for the retry.
//!
//! - So it is at the end: waits end, and what was taken for nobody is given back, so that it costs a task no attempt.
//!
//! Calls run in threads of their own, so that none keeps another, or the word that calls it off, from being heard.

mod call;
mod keeper;
mod look;
mod server;
mod session;
mod tools;
mod wire;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use claimdir::{Code, Error, Result};
use rmcp::ServiceExt;
use rmcp::model::RequestId;
use rmcp::service::ServerInitializeError;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;

use super::args;
use super::context::Context;
use super::report::Report;
use server::Server;
use session::Session;
use wire::{Side, Wire};

/// How long calls that are at work at the end may take to be answered, and then to give back what they took.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Serves until the end of standard input, until nobody reads standard output, or until SIGTERM or SIGINT; all are clean
/// ends.
pub(crate) fn serve(args: args::Mcp, context: &Context) -> Result<Report> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().map_err(unserved)?;
    let session = Arc::new(Session::new(args, context.global.clone()));
    keeper::start(&session).map_err(unserved)?;
    let ended = runtime.block_on(talk(&session));
    session.end(LAST_WORD);
    runtime.shutdown_background();
    ended.map(|()| Report::told())
}

async fn talk(session: &Arc<Session>) -> Result<()> {
    let mut signals = Signals::listen().map_err(unserved)?;
    let (ends, mut end) = watch::channel(None);
    let there = session.clone();
    let on_end = move |side| {
        // Here and now: there may be much to be heard before the end of the input is.
        there.close();
        ends.send_replace(Some(side));
    };
    let there = session.clone();
    let unsaid = move |id: &RequestId| call::call_off(&there, id);
    let wire = Wire::start(on_end, unsaid).map_err(unserved)?;
    let begun = tokio::select! {
        begun = Server::new(session.clone()).serve(wire) => begun,
        () = signals.told_to_stop() => return Ok(()),
        _ = end.wait_for(|end| *end == Some(Side::Output)) => return Ok(()),
    };
    let running = match begun {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(Error::usage(format!("the client does not speak MCP: {error}"))),
    };
    let stop = running.cancellation_token();
    let mut waiting = pin!(running.waiting());
    tokio::select! {
        _ = &mut waiting => return Ok(()),
        () = signals.told_to_stop() => {
            session.close();
            stop.cancel();
        }
        side = end.wait_for(Option::is_some) => {
            // What was said before the end of the input is heard.
            if side.is_ok_and(|side| *side == Some(Side::Output)) {
                stop.cancel();
            }
        }
    }
    let _ = timeout(LAST_WORD, waiting).await;
    Ok(())
}

struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        Ok(Signals { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    async fn told_to_stop(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

fn unserved(why: io::Error) -> Error {
    Error::new(Code::StoreUnavailable, format!("cannot serve: {why}"))
}
