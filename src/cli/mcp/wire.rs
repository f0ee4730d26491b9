//! Messages as lines, one each way a thread: standard input can't be read without waiting, and what it waits for may
//! never come.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::cli::json::MAX_BYTES;

/// The longest message that is taken: a few arguments of the longest.
const LONGEST: usize = 4 * MAX_BYTES as usize;

/// How many messages wait on either side.
const QUEUE: usize = 64;

/// How long the last answers may take to be read once the conversation is over.
const LAST_WORD: Duration = Duration::from_millis(200);

/// Standard input and output as a transport.
pub(super) struct Wire {
    heard: mpsc::Receiver<ClientJsonRpcMessage>,
    say: mpsc::Sender<Say>,
    all_said: Option<oneshot::Receiver<()>>,
    /// Has the client introduced itself? Before, whatever is no request is passed over: the SDK would give up.
    begun: bool,
    /// The requests that are to be answered. One that is called off keeps its id: no other request ever may have it.
    open: HashSet<RequestId>,
}

enum Say {
    /// With the request that it answers.
    Line(Vec<u8>, Option<RequestId>),
    Nothing,
}

/// Which side of the conversation has ended first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Input,
    Output,
}

impl Wire {
    /// `on_end` is told when nobody is there any more, at once, and perhaps again; `unsaid` of each request whose answer could
    /// not be said.
    pub(super) fn start(
        on_end: impl Fn(Side) + Send + Sync + 'static,
        unsaid: impl Fn(&RequestId) + Send + 'static,
    ) -> io::Result<Wire> {
        let on_end = Arc::new(on_end);
        let (input_ends, output_ends, reader_ends) = (on_end.clone(), on_end.clone(), on_end);
        let (hear, heard) = mpsc::channel(QUEUE);
        let (say, said) = mpsc::channel(QUEUE);
        let (done, all_said) = oneshot::channel();
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let (reader, complain) = (out.try_clone()?, say.clone());
        named("claim-mcp-in", move || {
            listen(io::stdin().lock(), &hear, &complain);
            input_ends(Side::Input);
        })?;
        named("claim-mcp-out", move || {
            speak(out, said, || output_ends(Side::Output), unsaid);
            let _ = done.send(());
        })?;
        named("claim-mcp-read", move || {
            if no_reader(&reader) {
                reader_ends(Side::Output);
            }
        })?;
        Ok(Wire { heard, say, all_said: Some(all_said), begun: false, open: HashSet::new() })
    }
}

/// Starts a thread with a name.
pub(super) fn named(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

impl Transport<RoleServer> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        match &message {
            JsonRpcMessage::Response(response) => self.open.remove(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().is_some_and(|id| self.open.remove(id)),
            _ => false,
        };
        let say = self.say.clone();
        async move { say.send(to_say(&message)?).await.map_err(|_| io::ErrorKind::BrokenPipe.into()) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.heard.recv().await?;
            if let JsonRpcMessage::Request(request) = &message {
                if !self.open.insert(request.id.clone()) {
                    // The SDK would answer one of the two.
                    if let Ok(no) = to_say(&no(taken_id(), Some(request.id.clone()))) {
                        let say = self.say.clone();
                        // Not waited for here: what is received is thrown away when something else comes first.
                        tokio::spawn(async move { say.send(no).await });
                    }
                    continue;
                }
                let is_whole = request.request.get_meta().protocol_version().is_some();
                self.begun |= is_whole || matches!(request.request, ClientRequest::InitializeRequest(_));
                return Some(message);
            }
            if self.begun {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        if let Some(all_said) = self.all_said.take() {
            let last = async {
                let _ = self.say.send(Say::Nothing).await;
                let _ = all_said.await;
            };
            let _ = tokio::time::timeout(LAST_WORD, last).await;
        }
        Ok(())
    }
}

fn line(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

fn to_say(message: &ServerJsonRpcMessage) -> io::Result<Say> {
    let answers = match message {
        JsonRpcMessage::Response(response) => Some(response.id.clone()),
        _ => None,
    };
    Ok(Say::Line(line(message)?, answers))
}

fn speak(mut out: impl Write, mut said: mpsc::Receiver<Say>, on_end: impl Fn(), unsaid: impl Fn(&RequestId)) {
    let mut is_read = true;
    while let Some(Say::Line(line, answers)) = said.blocking_recv() {
        if is_read && out.write_all(&line).is_err() {
            is_read = false;
            on_end();
        }
        if !is_read {
            answers.iter().for_each(&unsaid);
        }
    }
}

/// Waits until nobody can read `out` any more; false: that can't be known.
fn no_reader(out: &File) -> bool {
    loop {
        let mut asked = [PollFd::new(out, PollFlags::empty())];
        match poll(&mut asked, None) {
            Ok(_) => return asked.iter().all(|it| it.revents().intersects(PollFlags::ERR | PollFlags::HUP)),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Hands on messages, and answers itself what is none, until the end of the input or of the conversation.
fn listen(mut from: impl BufRead, hear: &mpsc::Sender<ClientJsonRpcMessage>, say: &mpsc::Sender<Say>) {
    let mut bytes = Vec::new();
    while let Ok(Some(whole)) = next_line(&mut from, &mut bytes) {
        let heard = if whole { understand(&bytes) } else { Err(no(too_long(), None)) };
        let is_heard = match heard {
            Ok(None) => true,
            Ok(Some(message)) => hear.blocking_send(message).is_ok(),
            Err(no) => to_say(&no).is_ok_and(|no| say.blocking_send(no).is_ok()),
        };
        if !is_heard {
            return;
        }
    }
}

/// Reads a line, or what is left at the end. `None`: nothing is left; false: it was too long, and nothing of it is kept.
fn next_line(from: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<Option<bool>> {
    bytes.clear();
    let (mut any, mut whole) = (false, true);
    loop {
        let piece = match from.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            piece => piece?,
        };
        if piece.is_empty() {
            return Ok(any.then_some(whole));
        }
        any = true;
        let end = piece.iter().position(|byte| *byte == b'\n');
        let kept = piece.get(..end.unwrap_or(piece.len())).unwrap_or_default();
        whole &= bytes.len() + kept.len() <= LONGEST;
        if whole {
            bytes.extend_from_slice(kept);
        } else {
            bytes.clear();
        }
        let used = kept.len() + usize::from(end.is_some());
        from.consume(used);
        if end.is_some() {
            return Ok(Some(whole));
        }
    }
}

/// A line as a message; `None`: there is nothing in it.
fn understand(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Box<ServerJsonRpcMessage>> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    match serde_json::from_slice(line) {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.is_data() => {
            let value: Value = serde_json::from_slice(line).unwrap_or_default();
            let id = value.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
            Err(no(ErrorData::invalid_request(format!("not a message of JSON-RPC 2.0: {error}"), None), id))
        }
        Err(error) => Err(no(ErrorData::parse_error(format!("not JSON: {error}"), None), None)),
    }
}

fn no(error: ErrorData, id: Option<RequestId>) -> Box<ServerJsonRpcMessage> {
    Box::new(ServerJsonRpcMessage::error(error, id))
}

fn taken_id() -> ErrorData {
    ErrorData::invalid_request("another request with this id is not answered yet", None)
}

fn too_long() -> ErrorData {
    ErrorData::invalid_request(format!("a message has at most {LONGEST} bytes"), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Option<Vec<u8>>> {
        let mut from = io::BufReader::with_capacity(3, text);
        let mut bytes = Vec::new();
        let mut found = Vec::new();
        while let Some(whole) = next_line(&mut from, &mut bytes).unwrap() {
            found.push(whole.then(|| bytes.clone()));
        }
        found
    }

    #[test]
    fn lines_end_with_a_break_or_with_the_input() {
        assert_eq!(lines(b""), [] as [Option<Vec<u8>>; 0]);
        assert_eq!(lines(b"one\n\ntwo"), [Some(b"one".to_vec()), Some(Vec::new()), Some(b"two".to_vec())]);
    }

    #[test]
    fn what_is_too_long_is_passed_over_and_the_next_line_is_not() {
        let mut text = vec![b'x'; LONGEST + 1];
        text.extend_from_slice(b"\nnext\n");
        assert_eq!(lines(&text), [None, Some(b"next".to_vec())]);
        assert_eq!(lines(&text[1..]), [Some(vec![b'x'; LONGEST]), Some(b"next".to_vec())]);
    }

    #[test]
    fn what_is_no_message_is_answered_with_its_id_where_it_has_one() {
        let no = |text: &[u8]| serde_json::to_value(*understand(text).unwrap_err()).unwrap();
        assert!(understand(b" \r").unwrap().is_none());
        for text in [&b"{\"id\":1"[..], b"\xff", "[".repeat(100_000).as_bytes()] {
            assert_eq!(no(text)["error"]["code"], -32700);
        }
        let answer = no(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":5}");
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&(-32600).into(), &7.into()));
        assert_eq!(no(b"[]")["error"]["code"], -32600);
    }
}
