//! A quota's record as JSON.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::read::place;
use super::write::{clock_json, to_bytes, with_extra};
use super::{FORMAT, Malformed, check_format};
use crate::domain::quota::{Quota, Rate, Spent};
use crate::domain::record::{Moment, Name, WriteId};
use crate::time::rfc3339;
use std::time::Duration;

/// The quota that `bytes` say; `None` of empty ones: nobody has set it.
pub(crate) fn decode(bytes: &[u8]) -> Result<Option<Quota>, Malformed> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut fields = Fields::parse("the quota", bytes)?;
    check_format(&mut fields)?;
    let _: String = fields.take("write")?;
    let limit: u64 = fields.take("limit")?;
    Ok(Some(Quota {
        version: fields.count("version")?,
        name: fields.with("name", |name: String| Name::new(name).ok())?,
        rate: fields.with("period_ms", |ms: u64| Rate::new(limit, Duration::from_millis(ms)).ok())?,
        entries: fields
            .take::<Vec<Value>>("entries")?
            .into_iter()
            .map(|entry| spent(Fields::of("an entry of the quota", entry)?))
            .collect::<Result<_, _>>()?,
        extra: fields.rest(),
    }))
}

fn spent(mut fields: Fields) -> Result<Spent, Malformed> {
    let longest = i64::try_from(Rate::MAX_PERIOD.as_millis()).unwrap_or(i64::MAX);
    let mut extra = Map::new();
    let clock = fields.object("clock", |mut clock| {
        let end = (clock.take("ends_mono_ms")?, place(&mut clock)?);
        super::read::keep("clock", clock.rest(), &mut extra);
        Ok(end)
    })?;
    let (mono_ms, place) = clock.unwrap_or_default();
    Ok(Spent {
        attempt: fields.with("attempt", |hex: String| u128::from_str_radix(&hex, 16).ok())?,
        amount: fields.count("amount")?,
        ends: Moment { wall_ms: fields.time("ends_at")?, mono_ms, place },
        length_ms: fields.with("length_ms", |ms: i64| (1..=longest).contains(&ms).then_some(ms))?,
        extra: {
            extra.extend(fields.rest());
            extra
        },
    })
}

/// The quota's bytes, made by the write `write`.
pub(crate) fn encode(quota: &Quota, write: WriteId) -> Vec<u8> {
    let entries: Vec<Value> = quota.entries.iter().map(spent_json).collect();
    let json = json!({
        "format": FORMAT,
        "version": quota.version,
        "write": write.to_string(),
        "name": quota.name.as_str(),
        "limit": quota.rate.limit(),
        "period_ms": quota.rate.period_ms(),
        "entries": entries,
    });
    match with_extra(json, &quota.extra) {
        Value::Object(map) => to_bytes(&map),
        _ => Vec::new(), // it was made as an object
    }
}

fn spent_json(spent: &Spent) -> Value {
    let json = json!({
        "amount": spent.amount,
        "ends_at": rfc3339(spent.ends.wall_ms),
        "length_ms": spent.length_ms,
        "clock": clock_json("ends_mono_ms", &spent.ends),
        "attempt": format!("{:032x}", spent.attempt),
    });
    with_extra(json, &spent.extra)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Place;

    fn sample() -> Quota {
        let place = Place { machine: "m".into(), boot: "b".into(), time_namespace: "t".into() };
        let mut quota = Quota::new(Name::new("a/ä").unwrap(), Rate::parse("100/1h").unwrap());
        quota.version = 4;
        quota.extra.insert("new".to_owned(), json!(1.50));
        quota.entries.push(Spent {
            attempt: 7,
            amount: 3,
            ends: Moment { wall_ms: 1_000, mono_ms: -5, place },
            length_ms: 3_600_000,
            extra: Map::from_iter([("hue".to_owned(), json!([1])), ("clock".to_owned(), json!({"new": 2}))]),
        });
        quota
    }

    #[test]
    fn a_rewrite_keeps_everything() {
        let bytes = encode(&sample(), WriteId::of(1));
        assert_eq!(decode(&bytes), Ok(Some(sample())), "{}", String::from_utf8_lossy(&bytes));
        assert_eq!(decode(b""), Ok(None));
    }

    #[test]
    fn refuses_what_is_no_quota() {
        let good = String::from_utf8(encode(&sample(), WriteId::of(1))).unwrap();
        for (from, to) in [
            ("\"limit\": 100", "\"limit\": 0"),
            ("\"period_ms\": 3600000", "\"period_ms\": 3"),
            ("\"length_ms\": 3600000", "\"length_ms\": 0"),
            ("\"amount\": 3", "\"amount\": -3"),
            ("\"entries\"", "\"entry\""),
            ("1970-01-01T00:00:01.000Z", "soon"),
        ] {
            let bad = good.replace(from, to);
            assert_ne!(bad, good, "{from}");
            assert!(matches!(decode(bad.as_bytes()), Err(Malformed::Broken(_))), "{to}");
        }
        let newer = good.replace("\"format\": 1", "\"format\": 2");
        assert_eq!(decode(newer.as_bytes()), Err(Malformed::TooNew(2)));
    }
}
