//! A terminal of its own, with a claim on it, and as much of an emulator as shows what a person would see.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::support::{Running, World, until};

/// What the terminal shows.
#[derive(Default)]
struct Shown {
    cells: Vec<Vec<char>>,
    at: (usize, usize),
    is_alternate: bool,
    hides_cursor: bool,
    coloured: bool,
    /// Bytes that may go on.
    begun: Vec<u8>,
}

impl Shown {
    fn feed(&mut self, bytes: &[u8]) {
        self.begun.extend(bytes);
        let bytes = std::mem::take(&mut self.begun);
        let mut rest = bytes.as_slice();
        while let Some(first) = rest.first() {
            let taken = match (first, rest.get(1)) {
                (0x1b, Some(b'[')) => self.sequence(&rest[2..]).map(|length| length + 2),
                (0x1b, None) => None,
                (0x1b, Some(_)) => Some(2),
                _ => self.character(rest),
            };
            match taken {
                Some(length) => rest = &rest[length..],
                None => break,
            }
        }
        self.begun = rest.to_vec();
    }

    fn character(&mut self, bytes: &[u8]) -> Option<usize> {
        let length =
            (1..=bytes.len().min(4)).find(|length| std::str::from_utf8(&bytes[..*length]).is_ok())?;
        let (row, column) = self.at;
        let c = std::str::from_utf8(&bytes[..length]).unwrap().chars().next().unwrap();
        if !c.is_control() {
            self.cells.resize(self.cells.len().max(row + 1), Vec::new());
            let line = &mut self.cells[row];
            line.resize(line.len().max(column + 1), ' ');
            line[column] = c;
            self.at = (row, column + 1);
        }
        Some(length)
    }

    fn sequence(&mut self, bytes: &[u8]) -> Option<usize> {
        let end = bytes.iter().position(|byte| (0x40..0x7f).contains(byte))?;
        let parameters = std::str::from_utf8(&bytes[..end]).unwrap();
        match (bytes[end], parameters) {
            (b'H', _) => {
                let mut numbers = parameters.split(';').map(|number| number.parse().unwrap_or(1_usize) - 1);
                self.at = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            }
            (b'J', _) => self.cells.clear(),
            (b'h' | b'l', "?1049") => self.is_alternate = bytes[end] == b'h',
            (b'h' | b'l', "?25") => self.hides_cursor = bytes[end] == b'l',
            (b'm', _) => self.coloured |= parameters.contains("38;5;") || parameters.contains("31"),
            _ => {}
        }
        Some(end + 1)
    }

    fn text(&self) -> String {
        self.cells.iter().map(|line| line.iter().collect::<String>() + "\n").collect()
    }
}

/// `claim watch` on a terminal.
pub(crate) struct Board {
    master: File,
    /// Held, so that its modes can be asked for when all is over.
    slave: OwnedFd,
    before: Termios,
    shown: Arc<Mutex<Shown>>,
    watch: Running,
}

impl Board {
    /// Starts it with these arguments on a terminal of this size, and reads what it shows.
    pub(crate) fn start(world: &World, arguments: &str, size: (u16, u16)) -> Board {
        Board::with(world, arguments, size, &[])
    }

    /// The same with these variables.
    pub(crate) fn with(
        world: &World,
        arguments: &str,
        size: (u16, u16),
        variables: &[(&str, &str)],
    ) -> Board {
        let board = Board::spawn(world, arguments, size, variables);
        let (mut master, shown) = (board.master.try_clone().unwrap(), board.shown.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = master.read(&mut buffer) {
                shown.lock().unwrap().feed(&buffer[..count]);
            }
        });
        board
    }

    /// The same on a terminal that nobody reads from.
    pub(crate) fn unread(world: &World, arguments: &str, size: (u16, u16)) -> Board {
        Board::spawn(world, arguments, size, &[])
    }

    fn spawn(world: &World, arguments: &str, size: (u16, u16), variables: &[(&str, &str)]) -> Board {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(&name, flags, Mode::empty()).unwrap();
        resize(&master, size);
        let before = tcgetattr(&slave).unwrap();
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let mut command = world.clean("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_claim"), "watch"]).args(arguments.split_whitespace());
        command.env("TERM", "xterm-256color").stdin(stdio()).stdout(stdio()).stderr(stdio());
        command.envs(variables.iter().copied());
        let watch = Running(command.spawn().unwrap());
        let master = File::from(master);
        Board { master, slave, before, shown: Arc::default(), watch }
    }

    pub(crate) fn id(&self) -> u32 {
        self.watch.id()
    }

    pub(crate) fn has_other_modes(&self) -> bool {
        tcgetattr(&self.slave).unwrap().local_modes != self.before.local_modes
    }

    pub(crate) fn type_in(&self, keys: &str) {
        (&self.master).write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, size: (u16, u16)) {
        resize(&self.master, size);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.watch.0), signal).unwrap();
    }

    pub(crate) fn text(&self) -> String {
        self.shown.lock().unwrap().text()
    }

    pub(crate) fn is_coloured(&self) -> bool {
        self.shown.lock().unwrap().coloured
    }

    /// Waits until all of this stands in one line.
    #[track_caller]
    pub(crate) fn shows(&self, parts: &[&str]) {
        let has = || self.text().lines().any(|line| parts.iter().all(|part| line.contains(part)));
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !has() {
            assert!(std::time::Instant::now() < end, "{parts:?} is not in\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    pub(crate) fn is_on_alternate_screen(&self) -> bool {
        self.shown.lock().unwrap().is_alternate
    }

    /// Waits for the end; the exit code.
    #[track_caller]
    pub(crate) fn exit(&mut self) -> Option<i32> {
        let mut status = None;
        until("the end of the board", || {
            status = self.watch.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }

    /// It has ended with 0, and the terminal is as it was before.
    #[track_caller]
    pub(crate) fn has_given_the_terminal_back(&mut self) {
        assert_eq!(self.exit(), Some(0));
        self.has_the_modes_it_had();
        until("the first screen, with its cursor", || {
            let shown = self.shown.lock().unwrap();
            !shown.is_alternate && !shown.hides_cursor
        });
    }

    #[track_caller]
    pub(crate) fn has_the_modes_it_had(&self) {
        let modes = |it: &Termios| (it.input_modes, it.output_modes, it.local_modes, it.control_modes);
        assert_eq!(modes(&tcgetattr(&self.slave).unwrap()), modes(&self.before));
    }

    /// The terminal is gone.
    pub(crate) fn hang_up(self) -> Running {
        let Board { master, slave, watch, .. } = self;
        drop((master, slave));
        watch
    }
}

fn resize(master: impl std::os::fd::AsFd, (columns, rows): (u16, u16)) {
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).unwrap();
}
