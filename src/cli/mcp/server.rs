//! Who asks what: the protocol's requests, each answered by a thread of its own.

use std::sync::Arc;

use claimdir::{Code, Error};
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult,
    CancelledNotificationParam, ConstString, CustomRequest, CustomResult, ErrorData, Implementation,
    InitializeResultMethod, ListToolsRequestMethod, ListToolsResult, PaginatedRequestParams, RequestId,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::{Semaphore, oneshot};

use super::call;
use super::session::Session;
use super::tools::{self, Call};
use super::wire::named;

/// How many calls are answered at a time, besides those that wait. More wait for their turn, and can be called off meanwhile.
const AT_ONCE: usize = 64;

/// How many calls with a `wait` are answered at a time. More are refused: their turn might not come within their wait.
const WAITING: usize = 64;

/// For the agent, with the tools.
const INSTRUCTIONS: &str = "\
Claim a node before you work on it: of all who try exactly one wins. `ok` true means yes. `exit` says what kind of no it \
is: 1 somebody else's or nothing there, do something else; 2 wrong arguments; 3 you have lost it, stop working on it; 4 it \
contradicts what is recorded; 5 waited in vain; 6 and 7 the claim directory. Claims made here are renewed while you are \
here, and end with this server; `lost_claims` in any answer names those you no longer have. Finish each claim.";

pub(super) struct Server {
    session: Arc<Session>,
    turns: Arc<Semaphore>,
    waits: Arc<Semaphore>,
}

impl Server {
    pub(super) fn new(session: Arc<Session>) -> Server {
        let [turns, waits] = [AT_ONCE, WAITING].map(|room| Arc::new(Semaphore::new(room)));
        Server { session, turns, waits }
    }

    /// Answers a call in a thread of its own. `None`: it was called off.
    async fn answer(
        &self,
        id: RequestId,
        mut call: claimdir::Result<Call>,
    ) -> Result<Option<CallToolResult>, ErrorData> {
        let failed =
            |why: &dyn std::fmt::Display| ErrorData::internal_error(format!("not answered: {why}"), None);
        let waits = call.as_ref().is_ok_and(Call::waits);
        let room = waits.then(|| self.waits.clone().try_acquire_owned().ok()).flatten();
        let turn = match room {
            Some(room) => room,
            None => {
                if waits {
                    call = Err(too_many());
                }
                self.turns.clone().acquire_owned().await.map_err(|error| failed(&error))?
            }
        };
        // From here on the thread runs: it is the thread that ends what is begun, also if nobody waits for it any more.
        self.session.begin(&id);
        let (tell, told) = oneshot::channel();
        let (session, asked) = (self.session.clone(), id.clone());
        let answer = move || {
            let _ = tell.send(call::answer(&session, &asked, call));
            drop(turn);
        };
        named("claim-mcp-call", answer).map_err(|error| {
            self.session.done(&id);
            failed(&error)
        })?;
        told.await.map_err(|error| failed(&error))
    }
}

fn too_many() -> Error {
    Error::new(Code::Contended, format!("{WAITING} calls wait here already"))
        .hint("call without `wait`, or again once one of them is answered")
}

/// What the client is told, if it listens still.
fn called_off() -> ErrorData {
    ErrorData::internal_error("called off", None)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("claim", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(call) = Call::of(&request.name, request.arguments) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None));
        };
        let (id, stopped) = (context.id, context.ct);
        tokio::select! {
            answer = self.answer(id.clone(), call) => Ok(answer?.ok_or_else(called_off)?.into()),
            () = stopped.cancelled() => {
                call::call_off(&self.session, &id);
                Err(called_off())
            }
        }
    }

    /// Also of a call that was answered before.
    async fn on_cancelled(&self, word: CancelledNotificationParam, _: NotificationContext<RoleServer>) {
        word.request_id.iter().for_each(|id| call::call_off(&self.session, id));
    }

    /// A request that is none of the protocol's, or one whose parameters are not what it takes.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        Err(
            if [CallToolRequestMethod::VALUE, ListToolsRequestMethod::VALUE, InitializeResultMethod::VALUE]
                .contains(&method.as_str())
            {
                ErrorData::invalid_params(format!("{method}: its parameters are not what it takes"), None)
            } else {
                ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, method, None)
            },
        )
    }
}
