//! Times and durations as people write them.
//!
//! Inside the program an instant is a number of milliseconds, on the wall clock since 1970 (UTC) or on the
//! machine's monotonic clock since its start; see [`Now`](crate::host::Now).

use std::time::Duration;

use jiff::fmt::temporal::Pieces;
use jiff::{Span, SpanRelativeTo, Timestamp};

use crate::error::{Error, Result};

/// The shortest lease.
pub const MIN_LEASE: Duration = Duration::from_millis(50);
/// The longest lease.
pub const MAX_LEASE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Reads a duration such as `500ms`, `30s`, `5m`, `1h30m` or `7d` (a day is 24 hours). Negative ones, those
/// without a unit and those longer than some 290 years are refused.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let refuse =
        || Error::usage(format!("not a duration: {text:?}; write it like 500ms, 30s, 5m, 1h30m or 7d"));
    // Which is read as hours, minutes and seconds, and mostly meant as a time of day.
    if text.contains(':') {
        return Err(refuse());
    }
    let span: Span = text.parse().map_err(|_| refuse())?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| refuse())?;
    Duration::try_from(length).map_err(|_| refuse())
}

/// Reads a lease's length: a duration from 50 ms to 30 days.
pub fn parse_lease(text: &str) -> Result<Duration> {
    let lease = parse_duration(text)?;
    if lease < MIN_LEASE || lease > MAX_LEASE {
        return Err(Error::usage(format!("a lease lasts from 50ms to 30d, not {text}")));
    }
    Ok(lease)
}

/// A moment as somebody names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// This long from now.
    In(Duration),
    /// At this time on the wall clock: milliseconds since 1970.
    At(i64),
}

impl When {
    /// Milliseconds from `wall_ms` on the wall clock; negative for what is past.
    pub(crate) fn away_ms(self, wall_ms: i64) -> i64 {
        match self {
            When::In(length) => i64::try_from(length.as_millis()).unwrap_or(i64::MAX),
            When::At(at) => at.saturating_sub(wall_ms),
        }
    }

    /// What makes a request that names it the same as another.
    pub(crate) fn arguments(self) -> serde_json::Value {
        match self {
            When::In(length) => serde_json::json!({"in": length.as_millis() as u64}),
            When::At(at) => serde_json::json!({"at": at}),
        }
    }
}

/// Reads a moment: a duration from now, as [`parse_duration`] does, or an RFC 3339 time.
pub fn parse_when(text: &str) -> Result<When> {
    if let Some(at) = parse_rfc3339(text) {
        return Ok(When::At(at));
    }
    parse_duration(text).map(When::In).map_err(|_| {
        if is_rfc3339(text) {
            let last = rfc3339_seconds(i64::MAX);
            return Error::usage(format!("too late: {text}; the latest moment that can be named is {last}"));
        }
        Error::usage(format!("not a moment: {text:?}; write it like 30s, 1h30m, or 2026-11-29T13:17:38Z"))
    })
}

/// Milliseconds since 1970 as RFC 3339 in UTC with milliseconds, clamped to what that format can say.
pub fn rfc3339(wall_ms: i64) -> String {
    format!("{:.3}", clamped(wall_ms))
}

/// The same to the second, for people: the second that has begun.
pub fn rfc3339_seconds(wall_ms: i64) -> String {
    format!("{:.0}", clamped(wall_ms))
}

/// Reads an RFC 3339 time; milliseconds since 1970.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(|t| t.as_millisecond())
}

/// Is it written as one, whether or not it can be told?
fn is_rfc3339(text: &str) -> bool {
    Pieces::parse(text).is_ok_and(|pieces| pieces.time().is_some() && pieces.offset().is_some())
}

fn clamped(wall_ms: i64) -> Timestamp {
    let end = if wall_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(wall_ms).unwrap_or(end)
}

/// A span of milliseconds as a person says it: `21s`, `4m10s`, `350ms`, `3d4h`. Two units at the most.
pub fn human(ms: i64) -> String {
    let ms = ms.max(0);
    if ms < 1000 {
        return format!("{ms}ms");
    }
    let s = ms / 1000;
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{small_unit}"),
    };
    match s {
        0..60 => format!("{s}s"),
        60..3600 => two(s / 60, "m", s % 60, "s"),
        3600..86400 => two(s / 3600, "h", s % 3600 / 60, "m"),
        _ => two(s / 86400, "d", s % 86400 / 3600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations() {
        for (text, ms) in
            [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("1h30m", 5_400_000), ("7d", 604_800_000)]
        {
            assert_eq!(parse_duration(text).ok(), Some(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_duration() {
        for text in [
            "",
            "30",
            "-5s",
            "5s ago",
            "nan",
            "inf",
            "1e9s",
            "s",
            "99999999999999999999d",
            "1mo",
            "1y",
            "13:17:38",
        ] {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
        for text in ["0s", "0", "49ms", "31d", "nan", "-30s"] {
            assert!(parse_lease(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn reads_moments() {
        assert_eq!(parse_when("2s").ok(), Some(When::In(Duration::from_secs(2))));
        assert_eq!(parse_when("1970-01-01T00:00:02+00:00").ok(), Some(When::At(2_000)));
        assert_eq!((When::At(500).away_ms(2_000), When::In(Duration::MAX).away_ms(1)), (-1_500, i64::MAX));
        for text in ["", "soon", "-2s", "2026-11-29", "13:17:38"] {
            assert!(parse_when(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn says_which_moment_is_the_latest() {
        let latest = "9999-12-30T22:00:00Z";
        assert!(parse_when(latest).is_ok());
        for late in ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59+01:00", "9999-12-30T22:00:01Z"] {
            let said = parse_when(late).unwrap_err().to_string();
            assert!(said.contains(latest) && !said.contains("not a moment"), "{said}");
        }
        assert!(parse_when("0000-01-01T00:00:00Z").is_ok());
        let said = parse_when("9999-12-31T23:59:59").unwrap_err().to_string();
        assert!(said.starts_with("not a moment"), "{said}");
    }

    #[test]
    fn says_times_and_spans() {
        assert_eq!(rfc3339(1_000), "1970-01-01T00:00:01.000Z");
        assert_eq!(rfc3339_seconds(1_999), "1970-01-01T00:00:01Z");
        assert_eq!(parse_rfc3339("1970-01-01T00:00:01.5Z"), Some(1_500));
        assert_eq!(rfc3339_seconds(-1), "1969-12-31T23:59:59Z");
        assert!(rfc3339(i64::MAX).starts_with("9999-"), "{}", rfc3339(i64::MAX));
        assert!(rfc3339(i64::MIN).starts_with("-009999-"), "{}", rfc3339(i64::MIN));
        for (ms, text) in
            [(-5, "0ms"), (999, "999ms"), (21_000, "21s"), (250_000, "4m10s"), (3_600_000, "1h")]
        {
            assert_eq!(human(ms), text);
        }
    }
}
