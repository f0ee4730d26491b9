//! The thread that reads the directory: never more than a tenth of the time of one processor, so that looking costs the
//! workers nothing, however many nodes there are.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use claimdir::store::files::Options;
use claimdir::{Code, Directory, Error, NodeId, Result};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{ClockId, clock_gettime};

use super::gather::{Asked, gather};
use super::inside::Detail;
use super::model::Board;
use super::past::Past;

/// Where and what to read.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) options: Options,
    /// The directory, if it is not a folder on this machine.
    pub(crate) remote: Option<Directory>,
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
            |what: &str, e: io::Error| Error::new(Code::StoreUnavailable, format!("cannot {what}: {e}"));
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = Arc::new(eventfd(0, flags).map_err(|e| failed("make an event descriptor", e.into()))?);
        let ((asks, asked), (tell, told)) = (channel(), channel());
        let reading = Reading { source, asked, tell, wake: wake.clone(), was_there: false, inside: None };
        let thread = thread::Builder::new().name("reader".to_owned());
        thread.spawn(move || reading.go_on()).map_err(|e| failed("start a thread", e))?;
        Ok(Reader { asks, told, wake })
    }

    /// Becomes readable when something was read.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// What was read since the last call; an error if nobody reads any more.
    pub(crate) fn told(&self) -> io::Result<Vec<Told>> {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        let mut all = Vec::new();
        loop {
            match self.told.try_recv() {
                Ok(told) => all.push(told),
                Err(TryRecvError::Empty) => return Ok(all),
                Err(TryRecvError::Disconnected) => return Err(io::Error::other("the reader has ended")),
            }
        }
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

struct Reading {
    source: Source,
    asked: Receiver<Ask>,
    tell: Sender<Told>,
    wake: Arc<OwnedFd>,
    was_there: bool,
    inside: Option<NodeId>,
}

/// Nobody wants to know any more.
struct Over;

type Done = std::result::Result<(), Over>;

impl Reading {
    /// Reads until nobody wants to know.
    fn go_on(mut self) {
        while self.whatever_is_there().is_ok() {}
    }

    /// Reads the directory that stands there now as long as it does; another may come to stand in its place.
    fn whatever_is_there(&mut self) -> Done {
        if let Some(directory) = self.source.remote.clone() {
            return self.while_there(&directory, None);
        }
        let opened = match which(&self.source.path) {
            Some(which) => Directory::open_with(&self.source.path, self.source.options).map(|it| (it, which)),
            None => return self.nobody_there(),
        };
        match opened {
            Ok((directory, which)) => {
                self.was_there = true;
                self.while_there(&directory, Some(which))
            }
            Err(error) => {
                self.say(Told::Trouble(error.to_string()))?;
                self.wait(None, self.source.interval)
            }
        }
    }

    fn nobody_there(&mut self) -> Done {
        let place = self.source.path.display();
        let says = match self.was_there {
            true => format!("{place} is gone; the board goes on when it is back"),
            false => format!("there is no {place} yet; the board goes on when there is"),
        };
        self.say(Told::Gone(says))?;
        self.wait(None, self.source.interval)
    }

    /// `there`: the folder that it is, if it is one.
    fn while_there(&mut self, directory: &Directory, there: Option<Which>) -> Done {
        let mut past = Past::of(directory);
        while there.is_none_or(|there| which(&self.source.path) == Some(there)) {
            let before = spent();
            let told = match gather(directory, &self.source.asked) {
                Ok(mut board) => {
                    board.events = past.newest(&self.source.asked);
                    Told::Board(Box::new(board))
                }
                Err(error) => Told::Trouble(error.to_string()),
            };
            let cost = spent().saturating_sub(before);
            self.say(told)?;
            self.wait(Some((directory, &past)), nap(self.source.interval, cost))?;
        }
        Ok(())
    }

    /// Waits until it may be read again; a node that is looked into is read meanwhile.
    fn wait(&mut self, there: Option<(&Directory, &Past<'_>)>, nap: Duration) -> Done {
        let end = Instant::now() + nap;
        self.detail(there)?;
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
                    self.detail(there)?;
                }
                Ok(Ask::Away) => self.inside = None,
                Err(RecvTimeoutError::Timeout) if end > Instant::now() => self.detail(there)?,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(Over),
            }
        }
    }

    fn say(&self, told: Told) -> Done {
        self.tell.send(told).map_err(|_| Over)?;
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        Ok(())
    }

    fn detail(&self, there: Option<(&Directory, &Past<'_>)>) -> Done {
        let (Some(id), Some((directory, past))) = (&self.inside, there) else { return Ok(()) };
        self.say(Told::Detail(Detail::read(directory, id, past)))
    }
}

/// Which folder it is: device and inode.
type Which = (u64, u64);

fn which(path: &Path) -> Option<Which> {
    let there = fs::metadata(path).ok().filter(|there| there.is_dir())?;
    Some((there.dev(), there.ino()))
}

/// How long to wait after a look that took so much of a processor.
pub(crate) fn nap(interval: Duration, cost: Duration) -> Duration {
    interval.max(cost.saturating_mul(10))
}

/// The processor's time that this process has had: a large directory is read by several threads.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
