//! The calls that a task can't do without while it is a file that two swaps change: what is left of the distance to a
//! database if everything but them cost nothing.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use rustix::fs::{AtFlags, Mode, OFlags, RawDir, fdatasync, fsync, openat, renameat, unlinkat};

/// About as long as a record.
const RECORD: [u8; 1000] = [b'x'; 1000];

/// Tasks a second by so many threads, in a folder that is made.
pub(crate) fn tasks(path: &Path, sync: bool, tasks: u64, threads: u64) -> f64 {
    for folder in ["", "intents", "due"] {
        fs::create_dir(path.join(folder)).unwrap();
    }
    for task in 0..tasks {
        fs::write(path.join(format!("t{task}")), RECORD).unwrap();
        fs::write(path.join(format!("due/ready{task}")), "").unwrap();
    }
    let next = AtomicU64::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let calls = Calls::new(path, sync);
                loop {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    if task >= tasks {
                        return;
                    }
                    calls.task(task);
                }
            });
        }
    });
    tasks as f64 / start.elapsed().as_secs_f64()
}

struct Calls {
    root: File,
    intents: File,
    due: File,
    sync: bool,
}

impl Calls {
    fn new(path: &Path, sync: bool) -> Calls {
        let folder = |name| File::open(path.join(name)).unwrap();
        Calls { root: File::open(path).unwrap(), intents: folder("intents"), due: folder("due"), sync }
    }

    /// Taken, with the hint of the lease's end for that of a task that is ready; then ended.
    fn task(&self, task: u64) {
        let (cell, ready, held) = (format!("t{task}"), format!("ready{task}"), format!("held{task}"));
        self.read(&cell);
        self.create(&self.due, &held);
        self.swap(&cell);
        unlinkat(&self.due, &ready, AtFlags::empty()).unwrap();
        self.swap(&cell);
        unlinkat(&self.due, &held, AtFlags::empty()).unwrap();
    }

    /// Stage, announce, look for others, validate, publish.
    fn swap(&self, cell: &str) {
        let (staged, announced) = (format!("tmp.{cell}"), format!("mine.{cell}"));
        let mut file = self.create(&self.intents, &staged);
        file.write_all(&RECORD).unwrap();
        if self.sync {
            fdatasync(&file).unwrap();
        }
        drop(file);
        renameat(&self.intents, &staged, &self.intents, &announced).unwrap();
        self.list();
        self.read(cell);
        renameat(&self.intents, &announced, &self.root, cell).unwrap();
        if self.sync {
            fsync(&self.root).unwrap();
        }
    }

    fn create(&self, folder: &File, name: &str) -> File {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        openat(folder, name, flags, Mode::from_raw_mode(0o666)).unwrap().into()
    }

    fn read(&self, name: &str) {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.root, name, flags, Mode::empty()).unwrap());
        let mut bytes = [0; RECORD.len() + 1];
        assert_eq!(file.read(&mut bytes).unwrap(), RECORD.len());
    }

    fn list(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&self.intents, ".", flags, Mode::empty()).unwrap();
        let mut buffer = Vec::with_capacity(16 << 10);
        let mut listing = RawDir::new(folder, buffer.spare_capacity_mut());
        while listing.next().is_some() {}
    }
}
