//! The command's output, kept as the result, and passed on to standard output where that is asked for.
//!
//! A thread passes it on, so that a reader who is slow to take the output holds up nothing else. Without a reader there
//! is nothing to hold up, and it is read as it comes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, ioctl_fionread, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::stdout;
use serde_json::Value;

use crate::cli::json::MAX_BYTES;

/// What was kept.
pub(crate) enum Captured {
    /// All of it.
    Whole(Vec<u8>),
    /// It was passed on, and is more than a result may have.
    TooLong,
    /// It could not be passed on to the end.
    Untold(io::Error),
}

/// The pipe on which the output comes.
pub(crate) struct Output(OwnedFd);

impl Output {
    /// The pipe, and its other end for the command.
    pub(crate) fn pipe() -> io::Result<(Output, Stdio)> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok((Output(ours), theirs.into()))
    }

    /// Starts to pass it on.
    pub(crate) fn pass_on(self) -> io::Result<Capture> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let (stop, done) = (Arc::new(eventfd(0, flags)?), Arc::new(eventfd(0, flags)?));
        let (stopped, finished) = (stop.clone(), done.clone());
        let thread = thread::Builder::new().name("claim-output".to_owned()).spawn(move || {
            let captured = copy(&self.0, &stopped);
            drop(self.0);
            raise(&finished);
            captured
        })?;
        Ok(Capture::PassedOn { stop, done, thread })
    }

    /// Keeps it, and passes nothing on.
    pub(crate) fn keep(self) -> io::Result<Capture> {
        fcntl_setfl(&self.0, OFlags::NONBLOCK)?;
        Ok(Capture::Kept { from: Some(self.0), kept: Kept::default() })
    }
}

/// Output that comes.
pub(crate) enum Capture {
    PassedOn {
        stop: Arc<OwnedFd>,
        done: Arc<OwnedFd>,
        thread: JoinHandle<Captured>,
    },
    Kept {
        /// Until all is read.
        from: Option<OwnedFd>,
        kept: Kept,
    },
}

impl Capture {
    /// The command has ended: take what is there, and wait for no more, though a process that left the command's
    /// group may still hold the pipe.
    pub(super) fn ends(&mut self) {
        match self {
            Capture::PassedOn { stop, .. } => raise(stop),
            Capture::Kept { from, .. } => {
                // More than is there now was written by somebody else.
                let left = from.as_ref().map_or(0, |from| ioctl_fionread(from).unwrap_or(0));
                self.read_up_to(left);
                if let Capture::Kept { from, .. } = self {
                    *from = None;
                }
            }
        }
    }

    /// Readable when there is something to [`Capture::read`], or once all is passed on.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Capture::PassedOn { done, .. } => Some(done.as_fd()),
            Capture::Kept { from, .. } => from.as_ref().map(AsFd::as_fd),
        }
    }

    /// Keeps what is there, within bounds: others wait for their turn too.
    pub(super) fn read(&mut self) {
        self.read_up_to(MAX_BYTES);
    }

    fn read_up_to(&mut self, mut left: u64) {
        let Capture::Kept { from, kept } = self else { return };
        let mut buffer = [0; 16 << 10];
        while let Some(pipe) = from.as_ref().filter(|_| left > 0) {
            match retry_on_intr(|| read(pipe, &mut buffer)) {
                Ok(count) if count > 0 => {
                    kept.add(buffer.get(..count).unwrap_or_default());
                    left = left.saturating_sub(count as u64);
                }
                Err(Errno::AGAIN) => return,
                _ => *from = None,
            }
        }
    }

    pub(super) fn is_done(&self) -> bool {
        match self {
            Capture::PassedOn { thread, .. } => thread.is_finished(),
            Capture::Kept { from, .. } => from.is_none(),
        }
    }

    /// What was kept, if that is known by now.
    pub(crate) fn take(self) -> Captured {
        let untold = |why: &str| Captured::Untold(io::Error::other(why.to_owned()));
        if !self.is_done() {
            return untold("it was interrupted");
        }
        match self {
            Capture::PassedOn { thread, .. } => {
                thread.join().unwrap_or_else(|_| untold("the thread that does it failed"))
            }
            Capture::Kept { kept, .. } => kept.captured(),
        }
    }
}

/// Output, up to the most that a result may have.
#[derive(Default)]
pub(crate) struct Kept {
    bytes: Vec<u8>,
    too_long: bool,
}

impl Kept {
    fn add(&mut self, piece: &[u8]) {
        self.too_long |= (self.bytes.len() + piece.len()) as u64 > MAX_BYTES;
        if self.too_long {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(piece);
        }
    }

    fn captured(self) -> Captured {
        if self.too_long { Captured::TooLong } else { Captured::Whole(self.bytes) }
    }
}

/// Makes an eventfd readable.
pub(crate) fn raise(event: &OwnedFd) {
    let _ = write(event, &1_u64.to_ne_bytes());
}

fn copy(from: &OwnedFd, stop: &OwnedFd) -> Captured {
    let mut kept = Kept::default();
    let mut buffer = vec![0; 64 << 10];
    // How much more to read, once that is known.
    let mut left = None;
    loop {
        if left.is_none() {
            let mut fds = [PollFd::new(from, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            if let Err(why) = retry_on_intr(|| poll(&mut fds, None)) {
                return Captured::Untold(why.into());
            }
            if !fds[1].revents().is_empty() {
                left = Some(ioctl_fionread(from).unwrap_or(0));
            }
        }
        let most = left.map_or(buffer.len(), |left| buffer.len().min(usize::try_from(left).unwrap_or(0)));
        let piece = match buffer.get_mut(..most) {
            None | Some([]) => break,
            Some(room) => match retry_on_intr(|| read(from, &mut *room)) {
                Ok(0) => break,
                Ok(count) => buffer.get(..count).unwrap_or_default(),
                Err(why) => return Captured::Untold(why.into()),
            },
        };
        left = left.map(|left| left.saturating_sub(piece.len() as u64));
        if let Err(why) = tell(piece) {
            return Captured::Untold(why.into());
        }
        kept.add(piece);
    }
    kept.captured()
}

/// Writes it all, also to a descriptor that somebody else made non-blocking.
fn tell(mut rest: &[u8]) -> rustix::io::Result<()> {
    while !rest.is_empty() {
        match write(stdout(), rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let out = stdout();
                retry_on_intr(|| poll(&mut [PollFd::new(&out, PollFlags::OUT)], None))?;
            }
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// The output as a result, or why it can't be one.
pub(crate) fn result(captured: Captured) -> Result<Value, String> {
    match captured {
        Captured::Whole(output) => parsed(output),
        Captured::TooLong => Err(format!("the output has more than {MAX_BYTES} bytes")),
        Captured::Untold(why) => Err(format!("the output could not be passed on: {why}")),
    }
}

/// What it says if it is JSON, else its text without the last line's end.
fn parsed(output: Vec<u8>) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_slice(&output) {
        return Ok(value);
    }
    let mut text =
        String::from_utf8(output).map_err(|_| "it is neither JSON nor text in UTF-8".to_owned())?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(Value::String(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn output_is_json_or_text() {
        for (output, expected) in [
            ("{\"a\": 1}\n", json!({"a": 1})),
            ("12\n", json!(12)),
            ("two\nlines\n", json!("two\nlines")),
            ("{\"a\": 1}\n{\"b\": 2}\n", json!("{\"a\": 1}\n{\"b\": 2}")),
            ("", json!("")),
        ] {
            assert_eq!(parsed(output.into()), Ok(expected));
        }
        assert!(parsed(vec![0xff, 0xfe]).is_err());
    }
}
