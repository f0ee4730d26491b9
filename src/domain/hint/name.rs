//! Hints' names: an order that is the order of their turns, and at most some 256 names a folder.

use super::{Mark, When, lane_of, optional};
use crate::domain::natural::{natural, of_natural};
use crate::domain::record::Task;

/// What a time is shifted by for each of its folders, and how much of that is left. Submissions come as fast as they
/// can be written down: 12 days, 70 minutes, a minute, a second, 16 ms.
const READY: [(u32, u64); 5] = [(30, u64::MAX), (22, 0xff), (16, 0x3f), (10, 0x3f), (4, 0x3f)];

/// Of what is held or rests there is less at any moment, and it is put and removed more often: 18 hours, 4 minutes, a
/// second.
const HELD: [(u32, u64); 3] = [(26, u64::MAX), (18, 0xff), (10, 0xff)];

/// The last moment that a name can say: milliseconds in 48 bits.
const LAST: u64 = (1 << 48) - 1;

/// The name of a task's hint.
pub(super) fn of(task: &Task, when: &When, mark: &Mark) -> String {
    let (run, leaf) = (run(task, mark), leaf(mark));
    match when {
        When::Ready { since_ms } => format!("{run}/{UP}/{}.{leaf}", time(&READY, *since_ms)),
        When::Timed { clock, mono_ms, wall_ms } => {
            format!("{run}/{TIMED}/{clock}/{}.{:012x}.{leaf}", time(&HELD, *mono_ms), clamped(*wall_ms))
        }
    }
}

/// The name in the short folder, of a claim that ends with its process.
pub(super) fn bound(task: &Task, mark: &Mark) -> String {
    format!("{}/bound/{}", lane_of(&mark.id, task), leaf(mark))
}

/// The name of a task's hint while `obstacle` is in its way, since `wall_ms`. `random` makes it one of its own.
pub(crate) fn parked(task: &Task, mark: &Mark, obstacle: &str, wall_ms: i64, random: u64) -> String {
    let time = time(&READY, wall_ms);
    format!("{}/{PARKED}/{obstacle}/{time}.{}.{random:016x}", run(task, mark), leaf(mark))
}

/// The folder of tasks that can be taken at once.
pub(crate) const UP: &str = "ready";

/// The folder of tasks that can be taken from a moment on.
pub(crate) const TIMED: &str = "timed";

/// The folder of tasks that have something in their way.
pub(crate) const PARKED: &str = "parked";

/// The folder of all hints of one queue, priority and project.
fn run(task: &Task, mark: &Mark) -> String {
    format!("{}/{}/{}", lane_of(&mark.id, task), task.priority, optional(task.project.as_ref()))
}

fn clamped(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0).min(LAST)
}

/// A time's folders, and the whole of it.
fn time(shifts: &[(u32, u64)], ms: i64) -> String {
    let ms = clamped(ms);
    let mut text = String::new();
    for (at, (shift, mask)) in shifts.iter().enumerate() {
        // The first folder's names have as many digits as it takes, all the same number.
        let digits = if at == 0 { 6 } else { 2 };
        text.push_str(&format!("{:0digits$x}/", (ms >> shift) & mask));
    }
    format!("{text}{ms:012x}")
}

/// The folders, each in the one before, in which a hint stands that is timed for `mono_ms`. Of two moments the earlier has
/// the lower folder at the first place where they differ.
pub(crate) fn timed_folders(mono_ms: i64) -> impl Iterator<Item = String> {
    let time = time(&HELD, mono_ms);
    let folders: Vec<String> = time.split('/').take(HELD.len()).map(str::to_owned).collect();
    folders.into_iter()
}

fn leaf(mark: &Mark) -> String {
    format!("{}~{:x}-{:016x}", natural(&mark.id), mark.version, mark.random)
}

/// What the last part of a hint's name tells.
pub(super) fn mark_of(name: &str) -> Option<Mark> {
    let (rest, leaf) = name.rsplit_once('/')?;
    let leaf = if is_parked(rest) { leaf.rsplit_once('.')?.0 } else { leaf };
    let (head, tail) = leaf.rsplit_once('~')?;
    let (version, random) = tail.split_once('-')?;
    let times = if rest.ends_with("/bound") { 0 } else { 1 + usize::from(is_timed(rest)) };
    let id = (0..times).try_fold(head, |head, _| head.split_once('.').map(|(_, rest)| rest))?;
    Some(Mark {
        id: of_natural(id)?,
        version: u64::from_str_radix(version, 16).ok()?,
        random: u64::from_str_radix(random, 16).ok()?,
    })
}

/// Is `name` just what a hint of `task` is called, whatever its moment? At any other place it leads nowhere.
pub(crate) fn is_of(task: &Task, name: &str) -> bool {
    let (Some(mark), Some((folder, leaf))) = (mark_of(name), name.rsplit_once('/')) else { return false };
    if folder.ends_with("/bound") {
        return name == bound(task, &mark);
    }
    let Some(when) = when_of(name) else { return false };
    if !is_parked(folder) {
        return name == of(task, &when, &mark);
    }
    let obstacle = folder.rsplit('/').nth(READY.len());
    let random = leaf.rsplit_once('.').and_then(|(_, random)| u64::from_str_radix(random, 16).ok());
    let parts = obstacle.zip(random);
    parts.is_some_and(|(obstacle, random)| name == parked(task, &mark, obstacle, when.wall_ms(), random))
}

/// Is a leaf in this folder one of `timed`? Before the time's folders is the clock's, and before that `timed`.
fn is_timed(folder: &str) -> bool {
    folder.rsplit('/').nth(HELD.len() + 1) == Some(TIMED)
}

/// The same of one in `parked`: before the time's folders is the obstacle, and before that `parked`.
pub(super) fn is_parked(folder: &str) -> bool {
    folder.rsplit('/').nth(READY.len() + 1) == Some(PARKED)
}

/// The moment in the name of a hint that has one.
pub(super) fn when_of(name: &str) -> Option<When> {
    let (folder, leaf) = name.rsplit_once('/')?;
    let (first, rest) = leaf.split_once('.')?;
    let number = |text: &str| i64::from_str_radix(text, 16).ok();
    if !is_timed(folder) {
        return Some(When::Ready { since_ms: number(first)? });
    }
    let clock = folder.rsplit('/').nth(HELD.len())?.to_owned();
    Some(When::Timed { clock, mono_ms: number(first)?, wall_ms: number(rest.split_once('.')?.0)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Name;
    use crate::id::NodeId;
    use serde_json::{Map, Value};

    fn id(text: &str) -> NodeId {
        NodeId::new(text).unwrap()
    }

    fn task(project: Option<&str>) -> Task {
        Task {
            title: None,
            input: Value::Null,
            input_blob: None,
            input_hash: String::new(),
            queue: Name::new("a/b").unwrap(),
            project: project.map(|name| Name::new(name).unwrap()),
            priority: 5,
            after: Vec::new(),
            review: false,
            resources: Default::default(),
            max_attempts: 1,
            deadline: None,
            subscribers: Vec::new(),
            by: String::new(),
            submitted_ms: 0,
            extra: Map::new(),
        }
    }

    #[test]
    fn names_read_back_and_are_ordered_by_their_moments() {
        let mark = Mark { id: id("x/y~1.2"), version: 17, random: u64::MAX };
        let moments = [-5, 0, 1, 15, 16, 1 << 10, 1 << 30, 1_700_000_000_000, 1 << 47, i64::MAX];
        let clock = "0123456789abcdef".to_owned();
        let names: Vec<String> = moments
            .iter()
            .map(|ms| of(&task(Some("timed")), &When::Ready { since_ms: *ms }, &mark))
            .collect();
        assert!(names.is_sorted(), "{names:#?}");
        for (name, ms) in names.iter().zip(moments) {
            assert_eq!(mark_of(name).as_ref(), Some(&mark));
            assert_eq!(when_of(name), Some(When::Ready { since_ms: clamped(ms) as i64 }));
        }
        let when = When::Timed { clock, mono_ms: 77_777, wall_ms: 1_700_000_000_000 };
        let name = of(&task(None), &when, &mark);
        let folders: Vec<String> = timed_folders(77_777).collect();
        assert!(name.contains(&format!("/0123456789abcdef/{}/0000", folders.join("/"))), "{name}");
        assert_eq!((mark_of(&name), when_of(&name)), (Some(mark.clone()), Some(when)));
        assert_eq!(mark_of(&bound(&task(None), &mark)), Some(mark.clone()));
        let aside = parked(&task(Some("parked")), &mark, "pool=a%2Fb", 1 << 40, 3);
        assert_eq!(
            (mark_of(&aside), when_of(&aside)),
            (Some(mark.clone()), Some(When::Ready { since_ms: 1 << 40 }))
        );
        let aside = aside.replace("/=parked/", "/-/");
        assert!(is_of(&task(None), &bound(&task(None), &mark)));
        for own in [&name, &aside] {
            assert!(is_of(&task(None), own), "{own}");
            let (folder, leaf) = own.rsplit_once('/').unwrap();
            for odd in [format!("{folder}/x{leaf}"), own.replace("/5/", "/4/"), own.replace("ueues", "ueue")]
            {
                assert!(!is_of(&task(None), &odd), "{odd}");
            }
        }
        let scoped = Mark { id: id("@s%2F1/x"), ..mark.clone() };
        let name_in_scope = of(&task(None), &when_of(&name).unwrap(), &scoped);
        assert!(name_in_scope.starts_with("due/queues/a%2Fb/=s%2F1/5/"), "{name_in_scope}");
        assert_eq!(mark_of(&name_in_scope), Some(scoped));
        assert!(name.split('/').all(|part| part.len() < 100));
        let turns = ["TK", "TK-2", "TK-2/a", "TK-9", "TK-10"].map(|text| {
            of(
                &task(None),
                &When::Ready { since_ms: 1_700_000_000_000 },
                &Mark { id: id(text), ..mark.clone() },
            )
        });
        assert!(turns.is_sorted(), "of one moment they are ordered as people count: {turns:#?}");
        for odd in ["due", "due/x", "a/b.c~x.y", "a/0.1~1.1", ""] {
            assert_eq!(mark_of(odd), None, "{odd}");
        }
    }
}
