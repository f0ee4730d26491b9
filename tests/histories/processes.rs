//! Workers as processes: the test program itself, started anew, killed by SIGKILL and frozen by SIGSTOP.

use std::env;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use claimdir::host::{Host, Os};
use rustix::process::{Pid, Signal, kill_process};

use super::log::Log;
use super::place::Place;
use super::plan::{BEAT, Fate, Fates, Plan, fate};
use super::worker::Worker;

const WORKER: &str = "CLAIM_HISTORY_WORKER";
/// How long workers get to come to an end when all can run. A guard against hanging for ever, not a measure.
const PATIENCE: Duration = Duration::from_secs(60);

struct Process {
    worker: u32,
    life: u32,
    child: Child,
    frozen: Option<(u64, Duration)>,
}

/// Runs the workers and lets their fates befall them.
pub(crate) fn run(place: &Place, plan: &Plan) -> Fates {
    let host = Os::new();
    let until = host.mono_ns() + plan.length.as_nanos() as u64;
    let mut random = plan.random(u32::MAX, 0);
    let mut fates = Fates::default();
    let mut processes: Vec<Process> =
        (0..plan.workers).map(|worker| start(place, plan, worker, 0, until)).collect();
    while host.mono_ns() < until {
        thread::sleep(BEAT);
        processes.iter_mut().for_each(|process| process.thaw(host.mono_ns(), &mut fates));
        let victim = &mut processes[random.within(0..u64::from(plan.workers)) as usize];
        match fate(&mut random) {
            Some(Fate::Kill) => {
                victim.kill(&host, &mut fates);
                *victim = start(place, plan, victim.worker, victim.life + 1, until);
            }
            Some(Fate::Freeze(length)) if victim.frozen.is_none() => {
                victim.signal(Signal::STOP);
                victim.frozen = Some((host.mono_ns(), length));
            }
            _ => {}
        }
    }
    let end = Instant::now() + PATIENCE;
    for process in &mut processes {
        process.thaw(u64::MAX, &mut fates);
    }
    for process in &mut processes {
        process.wait(end, &host, plan, &mut fates);
    }
    fates
}

impl Process {
    fn signal(&self, signal: Signal) {
        // Before it is waited for, its process id is nobody else's.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    fn thaw(&mut self, now: u64, fates: &mut Fates) {
        if let Some((since, length)) = self.frozen
            && now.saturating_sub(since) >= length.as_nanos() as u64
        {
            self.signal(Signal::CONT);
            self.frozen = None;
            let host = Os::new();
            fates.freezes.push((self.worker, since, host.mono_ns()));
        }
    }

    fn kill(&mut self, host: &Os, fates: &mut Fates) {
        self.signal(Signal::KILL);
        let status = self.child.wait().unwrap();
        // Waited for, so nothing of it happens any more.
        let now = host.mono_ns();
        if let Some((since, _)) = self.frozen.take() {
            fates.freezes.push((self.worker, since, now));
        }
        fates.kills.push((self.worker, self.life, now));
        if status.code().is_some_and(|code| code != 0) {
            fates.stuck.push(format!("worker {}.{} ended by itself: {status}", self.worker, self.life));
        }
    }

    fn wait(&mut self, end: Instant, host: &Os, plan: &Plan, fates: &mut Fates) {
        while Instant::now() < end {
            match self.child.try_wait().unwrap() {
                Some(status) if status.success() => return,
                Some(status) => {
                    let messages = plan.folder.join(messages(self.worker, self.life));
                    let what = format!(
                        "worker {}.{} ended by itself: {status}, see {}",
                        self.worker,
                        self.life,
                        messages.display()
                    );
                    fates.kills.push((self.worker, self.life, host.mono_ns()));
                    return fates.stuck.push(what);
                }
                None => thread::sleep(BEAT),
            }
        }
        fates.stuck.push(format!("worker {}.{} has not come to an end", self.worker, self.life));
        self.kill(host, fates);
    }
}

fn messages(worker: u32, life: u32) -> String {
    format!("{worker:03}.{life:04}.messages")
}

fn start(place: &Place, plan: &Plan, worker: u32, life: u32, until: u64) -> Process {
    let messages = File::create(plan.folder.join(messages(worker, life))).unwrap();
    let job = serde_json::json!([place.to_string(), plan.folder, worker, life, plan.seed, until]);
    let mutant = plan.mutant.map(|mutant| ("CLAIM_TEST_MUTANT", mutant));
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "worker", "--test-threads=1", "--nocapture"])
        .env(WORKER, job.to_string())
        .env("CLAIM_TEST_PAUSES", "1") // if this build has them
        .envs(mutant)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(messages)
        .spawn()
        .unwrap();
    Process { worker, life, child, frozen: None }
}

/// The worker process itself, if this is one.
pub(crate) fn worker() {
    let Ok(job) = env::var(WORKER) else { return };
    let (place, folder, worker, life, seed, until): (String, std::path::PathBuf, u32, u32, u64, u64) =
        serde_json::from_str(&job).unwrap();
    let plan = Plan { workers: 0, length: Duration::ZERO, seed, mutant: None, folder };
    let log = Log::create(&plan.folder, worker, life, Arc::new(Os::new()));
    Worker::new(Place::from(place.as_str()).open(), log, plan.random(worker, life)).work(until);
}
