//! The command's output, passed on to standard output and kept as the result.
//!
//! A thread does it, so that a reader who is slow to take the output holds up nothing else.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, ioctl_fionread, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::stdout;
use serde_json::Value;

use super::spool::{Large, Spool};

/// What was kept.
pub(crate) enum Captured {
    /// All of it.
    Whole(Vec<u8>),
    /// All of it, and it is too large for a record.
    Large(Large),
    /// It was passed on, and is more than a result may have.
    TooLong,
    /// It was passed on, and there was no room to keep it.
    Unkept(io::Error),
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
        Ok(Capture { stop, done, thread })
    }
}

/// Output being passed on.
pub(crate) struct Capture {
    stop: Arc<OwnedFd>,
    done: Arc<OwnedFd>,
    thread: JoinHandle<Captured>,
}

impl Capture {
    /// The command has ended: pass on what is there, and wait for no more, though a process that left the
    /// command's group may still hold the pipe.
    pub(super) fn ends(&self) {
        raise(&self.stop);
    }

    /// Readable once all is passed on.
    pub(super) fn done(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }

    pub(super) fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// What was kept, if that is known by now.
    pub(crate) fn take(self) -> Captured {
        let untold = |why: &str| Captured::Untold(io::Error::other(why.to_owned()));
        if !self.is_done() {
            return untold("it was interrupted");
        }
        self.thread.join().unwrap_or_else(|_| untold("the thread that does it failed"))
    }
}

/// Makes an eventfd readable.
pub(super) fn raise(event: &OwnedFd) {
    let _ = write(event, &1_u64.to_ne_bytes());
}

fn copy(from: &OwnedFd, stop: &OwnedFd) -> Captured {
    let mut kept = Spool::default();
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

/// The output as a result: what it says if it is JSON, else its text without the last line's end.
pub(crate) fn result(output: Vec<u8>) -> Result<Value, String> {
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
            assert_eq!(result(output.into()), Ok(expected));
        }
        assert!(result(vec![0xff, 0xfe]).is_err());
    }
}
