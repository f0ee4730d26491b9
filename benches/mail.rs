//! Sending and reading in a box with 100,000 messages against one with 100.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't go on has failed")]

mod table;

use std::path::Path;
use std::time::Instant;

use claimdir::store::files::Options;
use claimdir::{Directory, Letter, MailName};
use serde_json::json;

const FEW: u64 = 100;
const MANY: u64 = 100_000;

/// Blocks of each side, taken in turns, so that what else the machine does hits both.
const BLOCKS: usize = 41;
/// Operations a block.
const COUNT: u64 = 20;

fn main() {
    for (name, folder) in table::folders() {
        compare(name, &folder);
    }
}

fn compare(name: &str, folder: &Path) {
    let scratch = tempfile::tempdir_in(folder).unwrap();
    let options = Options { sync: false, ..Options::default() };
    let directory = Directory::open_with(scratch.path().join(".claims"), options).unwrap();
    let (large, reader) = (MailName::new("large").unwrap(), MailName::new("reader").unwrap());
    // Small boxes of their own for each block, since they grow.
    let small: Vec<MailName> = (0..BLOCKS).map(|n| MailName::new(format!("small{n}")).unwrap()).collect();
    small.iter().for_each(|of| fill(&directory, of, &reader, FEW));
    fill(&directory, &large, &reader, MANY);

    let (mut send, mut read) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for of in &small {
        send.0.push(timed(|| send_one(&directory, of)));
        send.1.push(timed(|| send_one(&directory, &large)));
        read.0.push(timed(|| read_page(&directory, of, &reader)));
        read.1.push(timed(|| read_page(&directory, &large, &reader)));
    }
    for (what, (few, many)) in [("send", send), ("read 10", read)] {
        let (few, many) = (table::median(few), table::median(many));
        let measured = format!("{many:.1} µs, among {FEW} {few:.1}");
        table::row(&format!("mail: {what} among {MANY}, {name}"), &measured, many / few, 1.5);
    }
}

fn fill(directory: &Directory, of: &MailName, reader: &MailName, count: u64) {
    (0..count).for_each(|_| send_one(directory, of));
    let all = usize::try_from(count).unwrap();
    directory.read_mail(of, reader, all).unwrap().unwrap();
    directory.acknowledge(of, reader, count - 10).unwrap().unwrap();
}

fn send_one(directory: &Directory, to: &MailName) {
    directory.send(to, &Letter::new("sender", json!({"n": 1}))).unwrap().unwrap();
}

fn read_page(directory: &Directory, of: &MailName, reader: &MailName) {
    let page = directory.read_mail(of, reader, 10).unwrap().unwrap();
    assert_eq!(page.messages.len(), 10);
}

fn timed(mut act: impl FnMut()) -> f64 {
    let started = Instant::now();
    (0..COUNT).for_each(|_| act());
    started.elapsed().as_secs_f64() * 1e6 / COUNT as f64
}
