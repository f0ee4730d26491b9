//! The terminal: its modes, what goes to it, what comes from it.
//!
//! It is given back as it was, whatever happens: [`Screen`] does so when it is dropped, and a hook when something
//! panics. Nothing here waits for a terminal that takes no more without hearing signals meanwhile.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::queue;
use ratatui::crossterm::style::{Attribute, SetAttribute};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;

use super::keys::{self, Key};
use super::state::Ui;
use super::view;
use crate::cli::run::signals::{Signals, stop_self};

/// Signals that end it, and those that say what has become of the terminal.
const ENDS: [Signal; 4] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];
const OTHERS: [Signal; 3] = [Signal::WINCH, Signal::TSTP, Signal::CONT];

/// How long a terminal that takes no more may keep the end waiting.
const PATIENCE: Duration = Duration::from_millis(200);

/// Why it is over.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// By a signal, or since the terminal is gone.
    Well,
    Badly(io::Error),
}

/// What came up.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) keys: Vec<Key>,
    pub(crate) suspend: bool,
}

/// What is to go to the terminal, kept until it takes it.
#[derive(Clone, Default)]
struct Page(Rc<RefCell<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A terminal that shows the board.
pub(crate) struct Screen {
    signals: Signals,
    input: OwnedFd,
    typed: Vec<u8>,
    output: OwnedFd,
    page: Page,
    terminal: Option<Terminal<CrosstermBackend<Page>>>,
    size: (u16, u16),
    suspend: bool,
}

impl Screen {
    /// Takes the terminal. Signals are heard here from now on, by threads that start later, too.
    pub(crate) fn take() -> io::Result<Screen> {
        let signals = Signals::block_these(ENDS.into_iter().chain(OTHERS))?;
        let screen = Screen {
            signals,
            input: input()?,
            typed: Vec::new(),
            output: output()?,
            page: Page::default(),
            terminal: None,
            size: (0, 0),
            suspend: false,
        };
        restore_on_panic();
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&self) -> io::Result<()> {
        enable_raw_mode()?;
        queue!(self.page.clone(), EnterAlternateScreen, Hide, Clear(ClearType::All))
    }

    /// Draws what has changed, or all of it if the terminal has.
    pub(crate) fn draw(&mut self, ui: &mut Ui) -> Result<(), Stopped> {
        let size = size(self.output.as_fd());
        let terminal = match self.terminal.take().filter(|_| size == self.size) {
            Some(terminal) => terminal,
            None => {
                queue!(self.page.clone(), SetAttribute(Attribute::Reset), Clear(ClearType::All))
                    .map_err(Stopped::Badly)?;
                // A viewport that is told its size asks the terminal nothing.
                let viewport = Viewport::Fixed(Rect::new(0, 0, size.0, size.1));
                let options = TerminalOptions { viewport };
                Terminal::with_options(CrosstermBackend::new(self.page.clone()), options)
                    .map_err(Stopped::Badly)?
            }
        };
        self.size = size;
        let terminal = self.terminal.insert(terminal);
        terminal
            .draw(|frame| {
                let area = frame.area();
                view::draw(ui, frame.buffer_mut(), area);
            })
            .map_err(Stopped::Badly)?;
        let bytes = std::mem::take(&mut *self.page.0.borrow_mut());
        self.write(&bytes)
    }

    /// Has all of it drawn next time.
    pub(crate) fn forget(&mut self) {
        self.terminal = None;
    }

    /// Writes when that doesn't wait: a terminal that takes no more must not keep a signal from being heard.
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Stopped> {
        while !bytes.is_empty() {
            let mut fds =
                [PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.output, PollFlags::OUT)];
            wait(&mut fds, None).map_err(Stopped::Badly)?;
            self.hear()?;
            match rustix::io::write(&self.output, bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::PIPE | Errno::IO | Errno::NXIO) => return Err(Stopped::Well),
                Err(e) => return Err(Stopped::Badly(e.into())),
            }
        }
        Ok(())
    }

    /// Waits for keys, signals, for what becomes readable at `other`, or for so long.
    pub(crate) fn wait(&mut self, other: BorrowedFd<'_>, timeout: Duration) -> Result<Heard, Stopped> {
        let mut fds = [
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.input, PollFlags::IN),
            PollFd::from_borrowed_fd(other, PollFlags::IN),
        ];
        wait(&mut fds, Some(timeout)).map_err(Stopped::Badly)?;
        let [_, input, _] = fds.each_ref().map(|fd| fd.revents());
        self.hear()?;
        let mut heard = Heard { suspend: std::mem::take(&mut self.suspend), keys: Vec::new() };
        if input.contains(PollFlags::IN) {
            heard.keys = self.keys()?;
        } else if input.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(Stopped::Well);
        }
        Ok(heard)
    }

    fn keys(&mut self) -> Result<Vec<Key>, Stopped> {
        let mut buffer = [0; 1024];
        match rustix::io::read(&self.input, &mut buffer) {
            // It was readable: there is nothing any more.
            Ok(0) | Err(Errno::IO) => return Err(Stopped::Well),
            Ok(count) => self.typed.extend(buffer.get(..count).unwrap_or_default()),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(e) => return Err(Stopped::Badly(e.into())),
        }
        Ok(keys::decode(&mut self.typed))
    }

    /// Takes the signals that have come.
    fn hear(&mut self) -> Result<(), Stopped> {
        while let Some(signal) = self.signals.next() {
            match signal {
                signal if ENDS.contains(&signal) => return Err(Stopped::Well),
                Signal::TSTP => self.suspend = true,
                // What others wrote meanwhile is drawn over.
                Signal::CONT => self.terminal = None,
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives the terminal back, stops as a job does, and takes it again when somebody continues this.
    pub(crate) fn suspend(&mut self) -> Result<(), Stopped> {
        self.leave();
        stop_self();
        self.terminal = None;
        self.enter().map_err(Stopped::Badly)
    }

    fn leave(&self) {
        let (bytes, end) = (leaving(), Instant::now() + PATIENCE);
        let mut left = bytes.as_slice();
        while !left.is_empty() {
            let mut fds = [PollFd::new(&self.output, PollFlags::OUT)];
            let patience = end.saturating_duration_since(Instant::now());
            if patience.is_zero() || wait(&mut fds, Some(patience)).is_err() {
                break;
            }
            match rustix::io::write(&self.output, left) {
                Ok(count) => left = left.get(count..).unwrap_or_default(),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => break,
            }
        }
        let _ = disable_raw_mode();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // After a panic the hook has done so, and its message should stay where it is.
        if !std::thread::panicking() {
            self.leave();
        }
    }
}

/// What gives the screen back as it was.
fn leaving() -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to memory can't fail.
    let _ = queue!(bytes, SetAttribute(Attribute::Reset), Show, LeaveAlternateScreen);
    bytes
}

/// A panic's message is worth nothing on a screen that is about to vanish, nor is a terminal left without echo.
fn restore_on_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = rustix::io::write(io::stdout(), &leaving());
        let _ = disable_raw_mode();
        tell(panic);
    }));
}

/// The terminal that is typed at: standard input, or the controlling terminal if that is something else.
fn input() -> io::Result<OwnedFd> {
    if io::stdin().is_terminal() {
        return io::stdin().as_fd().try_clone_to_owned();
    }
    Ok(rustix::fs::open("/dev/tty", OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Standard output, opened anew where that can be done: that others wait when they write to it is left alone.
fn output() -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open("/proc/self/fd/1", flags, Mode::empty()) {
        Ok(output) => Ok(output),
        Err(_) => io::stdout().as_fd().try_clone_to_owned(),
    }
}

/// Can this process have the terminal? Why not, if it can't.
pub(crate) fn why_not() -> Option<&'static str> {
    if !io::stdout().is_terminal() {
        return Some("standard output is none");
    }
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return Some("this one can't be drawn on (TERM=dumb)");
    }
    match input() {
        Err(_) => Some("there is none to type at"),
        // A job in the background that changed the terminal's modes would change them for the shell.
        Ok(input)
            if rustix::termios::tcgetpgrp(&input).is_ok_and(|group| group != rustix::process::getpgrp()) =>
        {
            Some("this process is not in its foreground")
        }
        Ok(_) => None,
    }
}

/// The size of a terminal that may not know it, or of what stands for one.
pub(crate) fn size(of: impl AsFd) -> (u16, u16) {
    let named = |name: &str| std::env::var(name).ok()?.parse().ok().filter(|size| *size > 0);
    let known = rustix::termios::tcgetwinsize(of).ok();
    let known = known.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.map_or_else(
        || (named("COLUMNS").unwrap_or(80), named("LINES").unwrap_or(24)),
        |size| (size.ws_col, size.ws_row),
    )
}

/// Standard output's.
pub(crate) fn size_of_output() -> (u16, u16) {
    size(io::stdout())
}

fn wait(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    let timeout =
        timeout.map(|it| Timespec { tv_sec: it.as_secs() as i64, tv_nsec: it.subsec_nanos().into() });
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
