//! Lines on standard input, whatever is on them.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::{Running, World, until};

/// A client that writes lines and reads lines.
pub struct Raw {
    server: Running,
    to: Option<ChildStdin>,
    from: Option<BufReader<ChildStdout>>,
}

impl Raw {
    /// A server that was greeted.
    pub fn start(world: &World, line: &str) -> Raw {
        let mut raw = Raw::ungreeted(world, line);
        raw.greet();
        raw
    }

    pub fn ungreeted(world: &World, line: &str) -> Raw {
        let mut command = world.claim();
        command.arg("mcp").args(line.split_whitespace()).stdin(Stdio::piped());
        let mut server = Running::spawn(&mut command);
        let (to, from) = (server.0.stdin.take(), server.0.stdout.take().map(BufReader::new));
        Raw { server, to, from }
    }

    fn greet(&mut self) {
        let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let told = self
            .ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}).to_string());
        assert_eq!(told["result"]["serverInfo"]["name"], "claim", "{told}");
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    fn write(&mut self, line: &str) {
        let to = self.to.as_mut().unwrap();
        to.write_all(line.as_bytes()).unwrap();
        to.write_all(b"\n").unwrap();
    }

    pub fn read(&mut self) -> Value {
        let mut line = String::new();
        self.from.as_mut().unwrap().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    fn ask(&mut self, line: &str) -> Value {
        self.write(line);
        self.read()
    }

    pub fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.begin(id, tool, arguments);
        let told = self.read();
        assert_eq!(told["id"], id, "{told}");
        told
    }

    /// Asks, and does not wait for the answer.
    pub fn begin(&mut self, id: u64, tool: &str, arguments: Value) {
        let params = json!({"name": tool, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.write(&call.to_string());
    }

    pub fn call_off(&mut self, id: u64) {
        let word =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        self.write(&word.to_string());
    }

    /// Closes the input; the exit code.
    fn end(mut self) -> i32 {
        self.close();
        self.wait()
    }

    /// Closes the server's input.
    pub fn close(&mut self) {
        drop(self.to.take());
    }

    pub fn stop_reading(&mut self) {
        drop(self.from.take());
    }

    /// All that the server says until its end.
    pub fn rest(&mut self) -> Vec<Value> {
        let lines = self.from.take().unwrap().lines();
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
    }

    /// The exit code, once it has ended by itself. Its input stays as it is.
    pub fn wait(mut self) -> i32 {
        let mut code = None;
        until("it has ended", || {
            code = self.server.0.try_wait().unwrap();
            code.is_some()
        });
        code.and_then(|status| status.code()).unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.server.id()
    }
}

#[test]
fn rubbish_is_answered_with_an_error_and_the_conversation_goes_on() {
    let world = World::new();
    let mut raw = Raw::start(&world, "");
    let deep = "[".repeat(50_000);
    let huge = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(5 << 20));
    for (line, code, id) in [
        ("rubbish", -32700, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1"#, -32700, Value::Null),
        (deep.as_str(), -32700, Value::Null),
        (huge.as_str(), -32600, Value::Null),
        ("[]", -32600, Value::Null),
        ("5", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"1.0","id":4,"method":"ping"}"#, -32600, json!(4)),
        (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"2.0","id":6,"method":"tools/destroy"}"#, -32601, json!(6)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[1]}"#, -32600, json!(7)),
        (
            r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"claim","arguments":"x"}}"#,
            -32602,
            json!(8),
        ),
        (
            r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"rm","arguments":{}}}"#,
            -32602,
            json!(9),
        ),
        (r#"{"jsonrpc":"2.0","id":"x","method":"prompts/list"}"#, -32601, json!("x")),
    ] {
        let told = raw.ask(line);
        let short: String = line.chars().take(80).collect();
        assert_eq!((&told["error"]["code"], &told["id"]), (&json!(code), &id), "{short}: {told}");
    }
    raw.write("");
    raw.write(r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":{"a":1}}"#);
    raw.write(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    raw.call_off(12345);
    let told = raw.call(10, "claim", json!({"id": "parser"}));
    assert_eq!(told["result"]["structuredContent"]["ok"], true, "{told}");
    assert_eq!(raw.end(), 0);
}

#[test]
fn rubbish_before_the_greeting_does_not_keep_anybody_out() {
    let world = World::new();
    let mut raw = Raw::ungreeted(&world, "");
    assert_eq!(raw.ask("\u{0}\u{1}")["error"]["code"], -32700);
    raw.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    raw.write(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    assert!(raw.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)["error"].is_object());
    assert!(raw.ask(r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}"#)["error"].is_object());
    raw.greet();
    assert_eq!(raw.call(3, "claim", json!({"id": "a"}))["result"]["isError"], false);
    assert_eq!(raw.end(), 0);
}

#[test]
fn a_last_line_without_a_break_is_answered_before_the_end() {
    let world = World::new();
    let mut raw = Raw::start(&world, "");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{"what":"state"}}}"#;
    raw.to.as_mut().unwrap().write_all(call.as_bytes()).unwrap();
    drop(raw.to.take());
    assert_eq!(raw.read()["result"]["structuredContent"]["ok"], true);
    assert_eq!(raw.end(), 0);
}
