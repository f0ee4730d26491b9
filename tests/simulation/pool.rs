//! Threads that are used again from run to run.

use std::sync::mpsc::{Sender, channel};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub struct Pool {
    workers: Vec<Sender<Job>>,
}

impl Pool {
    /// Gives a job to worker `index`, which must be idle or becomes so by itself.
    pub fn run(&mut self, index: usize, job: Job) {
        while self.workers.len() <= index {
            let (sender, jobs) = channel::<Job>();
            thread::Builder::new()
                .name(format!("simulated-{}", self.workers.len()))
                .spawn(move || jobs.into_iter().for_each(|job| job()))
                .unwrap();
            self.workers.push(sender);
        }
        self.workers[index].send(job).unwrap();
    }
}
