//! A process that waits to become the command.
//!
//! It leads the command's process group before there is a claim, so that the claim can name the group. Both
//! sides talk over a socket that stands where the stub's standard input will be: nothing leaks into the command
//! and no number is passed. The stub says that it is there, gets the environment and the real standard input,
//! and becomes the command: the socket then closes by itself, or brings back why that failed.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use claimdir::Lease;
use rustix::io::{Errno, fcntl_dupfd_cloexec, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, set_parent_process_death_signal, waitid,
};
use rustix::stdio;

/// The first argument that makes a process a stub; the command follows.
pub(crate) const SUBCOMMAND: &str = "__hold";

/// What the command is told of its claim; of an outer claim it learns nothing.
pub(crate) const VARIABLES: [&str; 5] =
    ["CLAIM_ID", "CLAIM_TOKEN", "CLAIM_GENERATION", "CLAIM_ATTEMPT", "CLAIMS_DIR"];

/// Its own writes are other requests than the one that this is a receipt for.
const RECEIPT: &str = "CLAIM_RECEIPT";

const READY: &[u8] = b"ready";

/// The most bytes of a message: an id, a path and some numbers.
const MAX_MESSAGE: usize = 16 << 10;

/// A stub that waits. Dropped, it ends without having become anything.
pub(crate) struct Stub {
    pid: Pid,
    socket: OwnedFd,
    armed: bool,
}

impl Stub {
    /// Starts a stub for `command`, which dies with the calling thread. It is not there before it is
    /// [ready](Stub::ready).
    pub(crate) fn start(command: &[OsString], stdout: Stdio) -> io::Result<Stub> {
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut stub = Command::new("/proc/self/exe");
        stub.arg0("claim").arg(SUBCOMMAND).args(command).process_group(0);
        for name in VARIABLES.into_iter().chain([RECEIPT]) {
            stub.env_remove(name);
        }
        let child = stub.stdin(theirs).stdout(stdout).spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        Ok(Stub { pid, socket, armed: true })
    }

    /// Waits until it is there.
    pub(crate) fn ready(self) -> io::Result<Stub> {
        match receive(&self.socket)?.0.as_slice() {
            READY => Ok(self),
            _ => Err(io::Error::other("the process that was to become the command has ended")),
        }
    }

    /// The stub's process, later the command's, and its group.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets it become the command under this claim, with this standard input. What is returned closes when it has,
    /// or brings [`failure`].
    pub(crate) fn go(mut self, lease: &Lease, dir: &Path, stdin: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        let (generation, attempt) = (lease.generation().to_string(), lease.attempt().to_string());
        let [id, token, generation, attempt] =
            [lease.id().as_str(), lease.token().reveal(), &generation, &attempt].map(str::as_bytes);
        let message: Vec<u8> = [id, token, generation, attempt, dir.as_os_str().as_bytes()].join(&0);
        send(&self.socket, &message, Some(stdin))?;
        let socket = fcntl_dupfd_cloexec(&self.socket, 3)?;
        self.armed = false;
        Ok(socket)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        if self.armed {
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = retry_on_intr(|| waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED));
        }
    }
}

/// Why the command could not be started, read once the socket is readable; `None`: it was.
pub(crate) fn failure(socket: &OwnedFd) -> Option<io::Error> {
    let (message, _) = receive(socket).ok()?;
    let number: [u8; 4] = message.as_slice().try_into().ok()?;
    Some(io::Error::from_raw_os_error(i32::from_ne_bytes(number)))
}

/// The stub's own work. It returns only if it did not become the command.
pub(crate) fn hold(command: &[OsString]) -> io::Result<Infallible> {
    // Said before READY: whoever sends the rest was alive to hear that, so its death from here on is noticed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let socket = fcntl_dupfd_cloexec(stdio::stdin(), 3)?;
    send(&socket, READY, None)?;
    let (message, Some(stdin)) = receive(&socket)? else { return Err(Errno::CANCELED.into()) };
    stdio::dup2_stdin(&stdin)?;
    drop(stdin);
    let [program, arguments @ ..] = command else { return Err(Errno::INVAL.into()) };
    let values = message.split(|byte| *byte == 0).map(OsStr::from_bytes);
    let error = Command::new(program).args(arguments).envs(VARIABLES.into_iter().zip(values)).exec();
    let number = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
    send(&socket, &number.to_ne_bytes(), None)?;
    Err(error)
}

fn send(socket: &OwnedFd, message: &[u8], descriptor: Option<BorrowedFd<'_>>) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.as_slice();
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let slices = [IoSlice::new(message)];
    retry_on_intr(|| sendmsg(socket, &slices, &mut control, SendFlags::NOSIGNAL)).map(drop)
}

/// The next message, empty at the end, with the descriptor that came with it.
fn receive(socket: &OwnedFd) -> rustix::io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut message = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        let mut slices = [IoSliceMut::new(&mut message)];
        recvmsg(socket.as_fd(), &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    message.truncate(received.bytes);
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    });
    Ok((message, descriptors.next()))
}
