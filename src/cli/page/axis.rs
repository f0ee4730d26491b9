//! Moments as places on a line.

use claimdir::time::rfc3339_seconds;

use super::story::Story;

/// A line of time.
pub(super) struct Axis {
    pub(super) start_ms: i64,
    pub(super) end_ms: i64,
}

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// How far marks may be apart.
const STEPS: [i64; 27] = [
    10,
    50,
    100,
    200,
    500,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    30 * DAY,
    365 * DAY,
];

/// How many marks there are at the most.
const MARKS: i64 = 6;

impl Axis {
    /// From the first that happened, or the time that was asked for, to the last; to now, if something goes on.
    pub(super) fn of(story: &Story) -> Axis {
        let first = story.rows.iter().map(|row| row.first_ms()).min().unwrap_or(story.now_ms);
        let last = story.rows.iter().map(|row| row.last_ms(story.now_ms)).max().unwrap_or(story.now_ms);
        let start_ms = first.max(story.since_ms.unwrap_or(i64::MIN)).min(story.now_ms);
        // Some room, so that what is at the edge can be seen.
        let room = (last.saturating_sub(start_ms) / 50).max(1);
        Axis { start_ms: start_ms.saturating_sub(room), end_ms: last.max(start_ms).saturating_add(room) }
    }

    fn span(&self) -> i64 {
        self.end_ms.saturating_sub(self.start_ms).max(1)
    }

    /// Where a moment is, in hundredths of the line.
    pub(super) fn place(&self, ms: i64) -> f64 {
        let away = ms.clamp(self.start_ms, self.end_ms).saturating_sub(self.start_ms);
        away as f64 * 100.0 / self.span() as f64
    }

    /// Round moments, and what they are called.
    pub(super) fn marks(&self) -> Vec<(f64, String)> {
        let step = STEPS.into_iter().find(|step| self.span() / step <= MARKS).unwrap_or(self.span());
        let first = self.start_ms.div_euclid(step).saturating_add(1).saturating_mul(step);
        let moments = (0..=MARKS).map(|n| first.saturating_add(n * step)).take_while(|ms| *ms < self.end_ms);
        moments.map(|ms| (self.place(ms), called(ms, step, self.span()))).collect()
    }
}

/// A moment, as exactly as its neighbours need it.
fn called(ms: i64, step: i64, span: i64) -> String {
    let time = rfc3339_seconds(ms); // 2026-11-29T13:17:38Z
    let part = |from: usize, to: usize| time.get(from..to).unwrap_or(&time);
    match (step, span) {
        (DAY.., _) => part(0, 10).to_owned(),
        (MINUTE.., DAY..) => format!("{} {}", part(5, 10), part(11, 16)),
        (MINUTE.., _) => part(11, 16).to_owned(),
        (SECOND.., _) => part(11, 19).to_owned(),
        _ => format!("{}.{:03}", part(11, 19), ms.rem_euclid(SECOND)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_few_and_in_order() {
        for span in [1, 7, 99, 1_000, 59_000, HOUR, 5 * HOUR, 40 * DAY, 3_000 * DAY] {
            let axis = Axis { start_ms: 1_700_000_000_123, end_ms: 1_700_000_000_123 + span };
            let marks = axis.marks();
            assert!(marks.len() <= MARKS as usize + 1, "{span}: {marks:?}");
            assert!(marks.is_sorted_by(|one, next| one.0 < next.0), "{span}: {marks:?}");
            assert!(marks.iter().all(|(at, _)| (0.0..=100.0).contains(at)), "{span}: {marks:?}");
            assert!(span < 99 || !marks.is_empty(), "{span}");
        }
        let axis = Axis { start_ms: 0, end_ms: 1_000 };
        assert_eq!((axis.place(-5), axis.place(250), axis.place(i64::MAX)), (0.0, 25.0, 100.0));
        assert_eq!(axis.marks()[0], (20.0, "00:00:00.200".to_owned()));
    }
}
