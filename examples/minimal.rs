//! The least that a claim can be: a program that creates a file with `O_EXCL`. `scripts/bench.sh` measures against it.

use std::fs::OpenOptions;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let Some(path) = args.next() else { return ExitCode::from(2) };
    let made = OpenOptions::new().write(true).create_new(true).open(path).is_ok();
    if args.next().is_some() {
        println!("{made}"); // where its memory is looked at while it waits for a reader
    }
    ExitCode::from(if made { 0 } else { 1 })
}
