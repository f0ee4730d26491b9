//! Rows of the one table that `scripts/bench.sh` prints.

/// Prints a row: what was measured, the target, and whether it is met.
pub(crate) fn row(what: &str, measured: &str, ratio: f64, most: f64) {
    let verdict = if ratio <= most { "met" } else { "MISSED" };
    println!("{what:<44} {measured:<34} {ratio:>6.2}  {most:>6.2}  {verdict}");
}

/// Prints a row of something that has no target.
#[allow(dead_code, reason = "not every benchmark has such a row")]
pub(crate) fn figure(what: &str, measured: &str) {
    println!("{what:<44} {measured}");
}

/// The middle value.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The folders to measure in: one on a disk, one in memory.
#[allow(dead_code, reason = "not every benchmark measures in folders")]
pub(crate) fn folders() -> Vec<(&'static str, std::path::PathBuf)> {
    let disk = std::env::var_os("BENCH_DISK").map_or_else(std::env::temp_dir, Into::into);
    let memory = std::path::PathBuf::from("/dev/shm");
    let mut folders = vec![("disk", disk)];
    if memory.is_dir() {
        folders.push(("tmpfs", memory));
    }
    folders
}
