//! A client, and what it was told.

use std::process::Command;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ListToolsResult, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, RunningService};
use rmcp::{ServiceExt, transport::TokioChildProcess};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::support::World;

/// An agent with its own server.
pub struct Agent {
    runtime: Runtime,
    client: RunningService<RoleClient, ()>,
    pub pid: u32,
}

/// The answer of a tool.
#[derive(Clone, Debug)]
pub struct Told {
    pub object: Value,
    pub is_error: bool,
    pub text: String,
}

impl Agent {
    /// `line`: options of `claim mcp`.
    pub fn start(world: &World, line: &str) -> Agent {
        let mut command = world.claim();
        command.arg("mcp").args(line.split_whitespace());
        Agent::of(command)
    }

    pub fn of(command: Command) -> Agent {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (client, pid) = runtime.block_on(async {
            let server = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
            let pid = server.id().unwrap();
            (().serve(server).await.unwrap(), pid)
        });
        Agent { runtime, client, pid }
    }

    /// Calls a tool and waits for its answer.
    #[track_caller]
    pub fn call(&self, tool: &str, arguments: Value) -> Told {
        let answer = self.runtime.block_on(self.client.call_tool(params(tool, arguments))).unwrap();
        let text = answer.content.iter().map(|block| block.as_text().unwrap().text.clone()).collect();
        Told {
            object: answer.structured_content.unwrap(),
            is_error: answer.is_error.unwrap_or_default(),
            text,
        }
    }

    /// Takes a node that can be taken.
    #[track_caller]
    pub fn take(&self, id: &str) -> Told {
        let told = self.call("claim", serde_json::json!({"id": id}));
        told.is(0);
        told
    }

    /// Calls a tool, and goes on with the call under way.
    pub fn begin(&self, tool: &str, arguments: Value) -> RequestHandle<RoleClient> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params(tool, arguments)));
        let send = self.client.send_cancellable_request(request, PeerRequestOptions::no_options());
        self.runtime.block_on(send).unwrap()
    }

    /// The answer of such a call.
    pub fn end(&self, call: RequestHandle<RoleClient>) -> Value {
        match self.runtime.block_on(call.await_response()).unwrap() {
            ServerResult::CallToolResult(answer) => answer.structured_content.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Throws the answer away.
    pub fn call_off(&self, call: RequestHandle<RoleClient>) {
        self.runtime.block_on(call.cancel(None)).unwrap();
    }

    pub fn tools(&self) -> ListToolsResult {
        self.runtime.block_on(self.client.list_tools(None)).unwrap()
    }

    /// Ends the conversation by closing the server's input.
    pub fn leave(self) {
        self.runtime.block_on(self.client.cancel()).unwrap();
    }

    /// Kills the server, as when the machine kills an agent with all of its processes.
    pub fn kill(self) {
        let pid = rustix::process::Pid::from_raw(self.pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        // Until the system has cleared it away.
        let _ = self.runtime.block_on(self.client.waiting());
    }
}

fn params(tool: &str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.as_object().unwrap().clone())
}

impl Told {
    /// Ended with this exit code.
    #[track_caller]
    pub fn is(&self, exit: u64) -> &Told {
        assert_eq!(self.object["exit"], exit, "{self:?}");
        assert_eq!(self.object["ok"], exit == 0, "{self:?}");
        assert_eq!(self.is_error, !matches!(exit, 0 | 1 | 5), "{self:?}");
        self
    }

    /// Was refused with this code.
    #[track_caller]
    pub fn is_no(&self, exit: u64, code: &str) -> &Told {
        self.is(exit);
        assert_eq!(self.object["code"], code, "{self:?}");
        self
    }

    #[track_caller]
    pub fn token(&self) -> String {
        self.object["token"].as_str().unwrap().to_owned()
    }

    /// The claims that are named as lost.
    pub fn lost(&self) -> Vec<String> {
        let lost = self.object["lost_claims"].as_array().cloned().unwrap_or_default();
        lost.iter().map(|lost| lost["id"].as_str().unwrap().to_owned()).collect()
    }
}
