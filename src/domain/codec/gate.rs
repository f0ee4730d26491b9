//! The record of a scope or a queue as JSON.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::read::{keep, place};
use super::write::{clock_json, to_bytes, with_extra};
use super::{FORMAT, Malformed, check_format};
use crate::domain::halt::{Gate, Gated, Halt};
use crate::domain::record::{Moment, Name, WriteId};
use crate::time::rfc3339;

/// What is open.
const OPEN: &str = "open";

/// The record that `bytes` are, of a scope or a queue; `None` of empty ones: nobody has said anything of it.
pub(crate) fn decode(of: Gated, bytes: &[u8]) -> Result<Option<Gate>, Malformed> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut fields = Fields::parse("the record", bytes)?;
    check_format(&mut fields)?;
    let _: String = fields.take("write")?;
    let mut extra = Map::new();
    let clock = fields.object("clock", |mut clock| {
        let at = (clock.take("at_mono_ms")?, place(&mut clock)?);
        keep("clock", clock.rest(), &mut extra);
        Ok(at)
    })?;
    let (mono_ms, place) = clock.unwrap_or_default();
    Ok(Some(Gate {
        version: fields.count("version")?,
        scope: fields.take("scope")?,
        is_open: fields.with("state", |state: String| match state.as_str() {
            OPEN => Some(true),
            state => (state == of.stopped()).then_some(false),
        })?,
        last: Halt {
            name: fields.with("name", |name: String| Name::new(name).ok())?,
            by: fields.take("by")?,
            reason: fields.take("reason")?,
            at: Moment { wall_ms: fields.time("at")?, mono_ms, place },
        },
        extra: {
            extra.extend(fields.rest());
            extra
        },
    }))
}

/// The record's bytes, made by the write `write`.
pub(crate) fn encode(of: Gated, gate: &Gate, write: WriteId) -> Vec<u8> {
    let Gate { version, scope, is_open, last, extra } = gate;
    let json = json!({
        "format": FORMAT,
        "version": version,
        "write": write.to_string(),
        "name": last.name.as_str(),
        "scope": scope,
        "state": if *is_open { OPEN } else { of.stopped() },
        "by": last.by,
        "reason": last.reason,
        "at": rfc3339(last.at.wall_ms),
        "clock": clock_json("at_mono_ms", &last.at),
    });
    match with_extra(json, extra) {
        Value::Object(map) => to_bytes(&map),
        _ => Vec::new(), // it was made as an object
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Place;

    fn sample() -> Gate {
        let place = Place { machine: "m".into(), boot: "b".into(), time_namespace: "t".into() };
        Gate {
            version: 3,
            scope: Some("s".to_owned()),
            is_open: false,
            last: Halt {
                name: Name::new("a/ä").unwrap(),
                by: "al".to_owned(),
                reason: Some("enough".to_owned()),
                at: Moment { wall_ms: 1_000, mono_ms: -5, place },
            },
            extra: Map::from_iter([
                ("hue".to_owned(), json!([1.50])),
                ("clock".to_owned(), json!({"new": 2})),
            ]),
        }
    }

    #[test]
    fn a_rewrite_keeps_everything() {
        for of in [Gated::Scope, Gated::Queue] {
            let bytes = encode(of, &sample(), WriteId::of(1));
            assert_eq!(decode(of, &bytes), Ok(Some(sample())), "{}", String::from_utf8_lossy(&bytes));
            let open = Gate { is_open: true, scope: None, ..sample() };
            assert_eq!(decode(of, &encode(of, &open, WriteId::of(2))), Ok(Some(open)));
            assert_eq!(decode(of, b""), Ok(None));
        }
    }

    #[test]
    fn refuses_what_is_no_such_record() {
        let good = String::from_utf8(encode(Gated::Scope, &sample(), WriteId::of(1))).unwrap();
        assert!(matches!(decode(Gated::Queue, good.as_bytes()), Err(Malformed::Broken(_))));
        for (from, to) in [
            ("\"cancelled\"", "\"paused\""),
            ("\"name\": \"a/ä\"", "\"name\": \"\""),
            ("\"version\": 3", "\"version\": -3"),
            ("1970-01-01T00:00:01.000Z", "soon"),
            ("\"by\"", "\"from\""),
        ] {
            let bad = good.replace(from, to);
            assert_ne!(bad, good, "{from}");
            assert!(matches!(decode(Gated::Scope, bad.as_bytes()), Err(Malformed::Broken(_))), "{to}");
        }
        let newer = good.replace("\"format\": 1", "\"format\": 2");
        assert_eq!(decode(Gated::Scope, newer.as_bytes()), Err(Malformed::TooNew(2)));
    }
}
