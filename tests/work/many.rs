//! Many at once.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Running, World, code, stderr, stdout};
use crate::{good, work};

#[test]
fn four_slots_run_four_commands_at_once() {
    let world = World::new();
    for id in 0..8 {
        good(&world, &format!("add t{id}"));
    }
    // Each goes on only when four are there together: those of the first round, then those of the second.
    let script = "touch here-$CLAIM_ID; while [ $(ls | grep -c '^here-') -lt 4 ]; do sleep .01; done";
    let output = work(&world, "--concurrency 4 --idle-exit", script).output().unwrap();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output).lines().filter(|line| line.starts_with("DONE ")).count(), 8);
}

const TASKS: usize = 1000;
const WORKERS: usize = 20;

/// Says so if another of this task's commands lives, and counts who has got to the end. A process is known by its
/// number and its start: so many begin and end here that numbers come around again.
const COUNTS: &str = "set -C
    started() { read -r line 2>/dev/null <\"/proc/$1/stat\" && set -- $line && state=$3 start=${22}; }
    for other in live/$CLAIM_ID.*; do
        [ -e \"$other\" ] || continue
        read -r pid then <\"$other\" || continue # killed before it had written that
        if started \"$pid\" && [ \"$start\" = \"$then\" ] && [ \"$state\" != Z ] && [ \"$state\" != X ]; then
            echo \"$other $line, seen by $$\" >\"clash/$CLAIM_ID.$CLAIM_GENERATION\"
        fi
    done
    started $$
    echo $$ $start >\"live/$CLAIM_ID.$CLAIM_GENERATION\" || echo again >\"clash/again.$CLAIM_ID.$CLAIM_GENERATION\"
    sleep .02
    claim check -q && : >\"ended/$CLAIM_ID.$CLAIM_GENERATION\"
    echo $CLAIM_GENERATION";

#[test]
fn twenty_workers_with_random_kills_get_every_task_done_once() {
    let world = World::new();
    for folder in ["live", "clash", "ended"] {
        fs::create_dir(world.at(folder)).unwrap();
    }
    for task in 0..TASKS {
        good(&world, &format!("add t{task} --max-attempts 1000"));
    }
    let start = |number: usize| {
        let mut command = work(&world, &format!("--lease 1h --quiet --owner w{number}"), COUNTS);
        command.stderr(fs::File::create(world.at("log")).unwrap());
        Running::of(command.spawn().unwrap())
    };
    let mut workers: Vec<Running> = (0..WORKERS).map(start).collect();
    let (mut random, mut kills) = (0x2545_f491_4f6c_dd1d_u64, 0);
    let ended = || {
        let names = fs::read_dir(world.at("ended")).unwrap().flatten().map(|entry| entry.file_name());
        let ids = names.map(|name| name.to_string_lossy().split('.').next().unwrap().to_owned());
        ids.collect::<BTreeSet<_>>().len()
    };
    crate::support::until("the end of most tasks", || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let victim = usize::try_from(random % WORKERS as u64).unwrap();
        workers[victim].signal(Signal::KILL);
        workers[victim] = start(victim);
        kills += 1;
        std::thread::sleep(std::time::Duration::from_millis(20 + random % 60));
        ended() > TASKS * 9 / 10
    });
    crate::support::until("the end of all", || good(&world, "list --state done").lines().count() == TASKS);
    for worker in workers {
        worker.signal(Signal::TERM);
        assert_eq!(code(&worker.end()), Some(0));
    }
    let clashes = fs::read_dir(world.at("clash")).unwrap().flatten();
    let clashes: Vec<String> = clashes.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect();
    assert!(clashes.is_empty(), "{clashes:#?}");
    assert!(kills > 5, "{kills} kills");
    for task in 0..TASKS {
        let node: Value = world.show(&format!("t{task}"));
        let completed =
            node["attempts"].as_array().unwrap().iter().filter(|it| it["ended"] == "completed").count();
        assert_eq!((&node["state"], completed), (&Value::from("done"), 1), "{node}");
        assert_eq!(node["outcome"]["result"], node["generation"], "{node}");
    }
}
