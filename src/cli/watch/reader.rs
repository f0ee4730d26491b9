//! The thread that reads the directory: never more than a tenth of the time of one processor, so that looking costs the
//! workers nothing, however many nodes there are.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use claimdir::store::files::Options;
use claimdir::{Code, Directory, Error, NodeId, Result};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{ClockId, clock_gettime};

use super::gather::{Asked, gather};
use super::inside::Detail;
use super::model::Board;

/// Where and what to read.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) options: Options,
    pub(crate) asked: Asked,
    pub(crate) interval: Duration,
}

/// What was read.
pub(crate) enum Told {
    Board(Box<Board>),
    Detail(Detail),
    /// It can't be read, and why.
    Trouble(String),
    /// There is no such directory any more.
    Gone(String),
}

enum Ask {
    Now,
    Into(NodeId),
    Away,
}

/// The reader as the loop sees it: something to ask, and to be told by.
pub(crate) struct Reader {
    asks: Sender<Ask>,
    told: Receiver<Told>,
    wake: Arc<OwnedFd>,
}

impl Reader {
    /// Starts to read.
    pub(crate) fn start(source: Source) -> Result<Reader> {
        let failed =
            |what: &str, e: std::io::Error| Error::new(Code::StoreUnavailable, format!("cannot {what}: {e}"));
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = Arc::new(eventfd(0, flags).map_err(|e| failed("make an event descriptor", e.into()))?);
        let ((asks, asked), (tell, told)) = (channel(), channel());
        let reading =
            Reading { source, asked, tell, wake: wake.clone(), open: None, was_there: false, inside: None };
        let thread = thread::Builder::new().name("reader".to_owned());
        thread.spawn(move || reading.go_on()).map_err(|e| failed("start a thread", e))?;
        Ok(Reader { asks, told, wake })
    }

    /// Becomes readable when something was read.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// What was read since the last call.
    pub(crate) fn told(&self) -> Vec<Told> {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        self.told.try_iter().collect()
    }

    pub(crate) fn read_now(&self) {
        let _ = self.asks.send(Ask::Now);
    }

    /// Reads this node too from now on.
    pub(crate) fn look_into(&self, id: NodeId) {
        let _ = self.asks.send(Ask::Into(id));
    }

    pub(crate) fn look_away(&self) {
        let _ = self.asks.send(Ask::Away);
    }
}

/// An open directory, and which one it is: another may come to stand in its place.
struct Open {
    directory: Directory,
    device: u64,
    inode: u64,
}

struct Reading {
    source: Source,
    asked: Receiver<Ask>,
    tell: Sender<Told>,
    wake: Arc<OwnedFd>,
    open: Option<Open>,
    was_there: bool,
    inside: Option<NodeId>,
}

/// Nobody wants to know any more.
struct Over;

impl Reading {
    /// Reads until nobody wants to know.
    fn go_on(mut self) {
        while self.turn().is_ok() {}
    }

    /// Reads the board, then waits until it may be read again.
    fn turn(&mut self) -> std::result::Result<(), Over> {
        let before = spent();
        let told = self.board();
        let cost = spent().saturating_sub(before);
        self.say(told)?;
        self.detail()?;
        let end = Instant::now() + nap(self.source.interval, cost);
        loop {
            let mut left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if self.inside.is_some() {
                left = left.min(self.source.interval);
            }
            match self.asked.recv_timeout(left) {
                Ok(Ask::Now) => return Ok(()),
                Ok(Ask::Into(id)) => {
                    self.inside = Some(id);
                    self.detail()?;
                }
                Ok(Ask::Away) => self.inside = None,
                Err(RecvTimeoutError::Timeout) => self.detail()?,
                Err(RecvTimeoutError::Disconnected) => return Err(Over),
            }
        }
    }

    fn say(&self, told: Told) -> std::result::Result<(), Over> {
        self.tell.send(told).map_err(|_| Over)?;
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        Ok(())
    }

    fn detail(&mut self) -> std::result::Result<(), Over> {
        let (Some(id), Some(open)) = (&self.inside, &self.open) else { return Ok(()) };
        let detail = Detail::read(&open.directory, id);
        self.say(Told::Detail(detail))
    }

    fn board(&mut self) -> Told {
        match self.opened() {
            Ok(Some(directory)) => match gather(&directory, &self.source.asked) {
                Ok(board) => Told::Board(Box::new(board)),
                Err(error) => Told::Trouble(error.to_string()),
            },
            Ok(None) => {
                let place = self.source.path.display();
                Told::Gone(match self.was_there {
                    true => format!("{place} is gone; the board goes on when it is back"),
                    false => format!("there is no {place} yet; the board goes on when there is"),
                })
            }
            Err(error) => Told::Trouble(error.to_string()),
        }
    }

    /// The directory that stands there now, if one does.
    fn opened(&mut self) -> Result<Option<Directory>> {
        let Some(there) = fs::metadata(&self.source.path).ok().filter(|there| there.is_dir()) else {
            self.open = None;
            return Ok(None);
        };
        let (device, inode) = (there.dev(), there.ino());
        if let Some(open) = self.open.as_ref().filter(|open| (open.device, open.inode) == (device, inode)) {
            return Ok(Some(open.directory.clone()));
        }
        let directory = Directory::open_with(&self.source.path, self.source.options)?;
        self.was_there = true;
        self.open = Some(Open { directory: directory.clone(), device, inode });
        Ok(Some(directory))
    }
}

/// How long to wait after a look that took so much of a processor.
pub(crate) fn nap(interval: Duration, cost: Duration) -> Duration {
    interval.max(cost.saturating_mul(10))
}

/// The processor's time that this thread has had.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
