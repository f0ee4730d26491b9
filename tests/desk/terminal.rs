//! A terminal that a command writes to.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// What the command shows on a terminal of this width, line by line.
pub(crate) fn shown(command: &mut Command, width: u16) -> Vec<String> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    tcsetwinsize(&master, Winsize { ws_row: 50, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave =
        rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let mut child = command.stdout(Stdio::from(slave)).stderr(Stdio::null()).spawn().unwrap();
    command.stdout(Stdio::null()); // it keeps the terminal open until another takes its place
    let mut shown = Vec::new();
    let mut master = File::from(master);
    let mut page = [0; 4096];
    // When the last one has closed it, reading fails.
    while let Ok(count @ 1..) = master.read(&mut page) {
        shown.extend_from_slice(&page[..count]);
    }
    child.wait().unwrap();
    let text = String::from_utf8(shown).unwrap().replace("\r\n", "\n");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "no colours, no cursor: {text:?}");
    text.lines().map(str::to_owned).collect()
}
