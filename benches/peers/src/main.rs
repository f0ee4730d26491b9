//! A task queue on SQLite, as careful as one is written by hand: WAL, an index on what is taken next, `BEGIN
//! IMMEDIATE` for each take, a lease and a token, and a result recorded under the token.
//!
//! `peers FILE TASKS WORKERS full|off [COMMAND…]` prints tasks a second. With a command, it is run for each task. With no
//! workers it only makes the tasks, and `peers FILE next full|off` takes one of them: exit 1, if there is none.

use std::error::Error;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

fn open(file: &str, sync: &str) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", sync)?;
    Ok(connection)
}

/// Takes the first task: its number and token.
fn take(connection: &mut Connection) -> rusqlite::Result<Option<(i64, i64)>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as i64);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let taken = transaction
        .prepare_cached(
            "UPDATE tasks SET state = 1, ends = ?1, generation = generation + 1, token = random()
             WHERE id = (SELECT id FROM tasks WHERE state = 0 ORDER BY priority, id LIMIT 1)
             RETURNING id, token",
        )?
        .query_row(params![now + 30_000], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    transaction.commit()?;
    Ok(taken)
}

/// Takes and ends tasks until there are none.
fn work(file: &str, sync: &str, command: &[String]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut connection = open(file, sync)?;
    while let Some((id, token)) = take(&mut connection)? {
        if let [program, arguments @ ..] = command {
            let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
            assert!(output.status.success());
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction
            .prepare_cached("UPDATE tasks SET state = 2, result = 'null' WHERE id = ?1 AND token = ?2")?
            .execute(params![id, token])?;
        transaction.commit()?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [file, next, sync] = arguments.as_slice()
        && next == "next"
    {
        let Some((id, token)) = take(&mut open(file, sync)?)? else { std::process::exit(1) };
        println!("{id} {token}");
        return Ok(());
    }
    let [file, tasks, workers, sync, command @ ..] = arguments.as_slice() else {
        return Err("usage: peers FILE TASKS WORKERS full|off [COMMAND…]".into());
    };
    let mut connection = open(file, sync)?;
    connection.execute_batch(
        "CREATE TABLE tasks (id INTEGER PRIMARY KEY, name TEXT UNIQUE, state INTEGER, priority INTEGER, ends INTEGER,
             generation INTEGER, token INTEGER, input TEXT, result TEXT);
         CREATE INDEX due ON tasks (state, priority, id);",
    )?;
    let transaction = connection.transaction()?;
    for task in 0..tasks.parse::<i64>()? {
        transaction
            .prepare_cached("INSERT INTO tasks VALUES (?1, ?2, 0, 5, 0, 0, 0, '{}', NULL)")?
            .execute(params![task, format!("t{task}")])?;
    }
    transaction.commit()?;
    let start = Instant::now();
    thread::scope(|scope| {
        let workers = (0..workers.parse::<usize>().unwrap_or(1)).map(|_| scope.spawn(|| work(file, sync, command)));
        workers.collect::<Vec<_>>().into_iter().try_for_each(|worker| worker.join().expect("a worker panicked"))
    })?;
    println!("{:.0}", tasks.parse::<f64>()? / start.elapsed().as_secs_f64());
    Ok(())
}
