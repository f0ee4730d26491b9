//! What `doctor` asks of etcd: does each machine answer, and how far is its clock from this one's?

use std::time::Duration;

use super::http::Client;
use crate::store::{Finding, Gravity};

/// How often a clock is asked at most: it tells whole seconds, so it is asked until the second changes.
const LOOKS: u32 = 60;
/// How long between.
const PAUSE: Duration = Duration::from_millis(20);

/// A clock's distance from this machine's.
pub(super) struct Skew {
    /// How far it is ahead, in milliseconds; negative: behind.
    ahead_ms: i64,
    /// By how much that may be wrong, in milliseconds.
    within_ms: i64,
}

pub(super) fn inspect(client: &Client, max_skew: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (host, endpoint) in client.endpoints() {
        let mut find = |what: String, next: &str| {
            findings.push(Finding::new(Gravity::Fault, format!("etcd at {host}"), what, next));
        };
        match client.look(endpoint, "/health") {
            Err(why) => {
                find(
                    format!("it does not answer: {why}"),
                    "start it, or see that it can be reached from here",
                );
                continue;
            }
            Ok((says, _)) if says["health"] != "true" => {
                let why = says["reason"].as_str().unwrap_or("no reason given");
                let why: String = why.chars().take(200).collect();
                find(format!("it is not well: {why}"), "see its own log");
            }
            Ok(_) => {}
        }
        if let Some(skew) = measure(client, endpoint)
            && let Some(what) = too_far(&skew, max_skew)
        {
            find(what, "set the clocks of all machines by NTP, or declare a larger skew on all of them");
        }
    }
    findings
}

/// What is wrong with a clock, if it is certainly further away than it may be.
fn too_far(skew: &Skew, max_skew: Duration) -> Option<String> {
    let most = i64::try_from(max_skew.as_millis()).unwrap_or(i64::MAX);
    let distance = skew.ahead_ms.saturating_abs();
    (distance.saturating_sub(skew.within_ms) > most).then(|| {
        let side = if skew.ahead_ms > 0 { "ahead of" } else { "behind" };
        format!(
            "its clock is {distance} ms {side} this machine's (± {}), and --max-skew says {most} at the most",
            skew.within_ms
        )
    })
}

/// The moment at which the clock's second changed lies between two answers.
fn measure(client: &Client, endpoint: &str) -> Option<Skew> {
    let mut last: Option<(i64, i64)> = None; // its second, and our time before that was asked for
    for _ in 0..LOOKS {
        let before = client.host.now().wall_ms;
        let (_, second) = client.look(endpoint, "/version").ok()?;
        let after = client.host.now().wall_ms;
        let second = second?;
        if let Some((earlier, since)) = last
            && second > earlier
        {
            return Some(Skew {
                ahead_ms: second.saturating_mul(1000).saturating_sub((since + after) / 2),
                within_ms: (after - since) / 2 + 1,
            });
        }
        last = Some((second, before));
        client.host.pause(PAUSE);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_is_certainly_too_far_is_a_fault() {
        let most = Duration::from_secs(2);
        for (ahead_ms, within_ms, wrong) in [
            (2_500, 100, true),
            (-2_500, 100, true),
            (2_050, 100, false),
            (-1_000, 5, false),
            (i64::MIN, 0, true),
        ] {
            assert_eq!(too_far(&Skew { ahead_ms, within_ms }, most).is_some(), wrong, "{ahead_ms}");
        }
    }
}
