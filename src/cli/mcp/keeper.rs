//! Renews what the server holds, in a thread of its own.

use std::io;
use std::sync::Arc;

use claimdir::{Refusal, Renewal, Result};

use super::session::{Held, Session};
use super::wire::named;

pub(super) fn start(session: &Arc<Session>) -> io::Result<()> {
    let session = session.clone();
    named("claim-mcp-keep", move || {
        while let Some(held) = session.next_due() {
            match renew(&session, &held) {
                Ok(None) => session.renewed(&held),
                Ok(Some(refusal)) => session.refused(&held, refusal),
                // The disk may come back before the lease ends.
                Err(_) => session.not_renewed(&held),
            }
        }
    })
}

fn renew(session: &Session, held: &Held) -> Result<Option<Refusal>> {
    Ok(session.context().directory()?.renew(&held.id, &held.token, &Renewal::default())?.err())
}
