//! Which request made a record what it is.

use serde_json::{Value, json};

/// The blake3 hash of a request in canonical form: what must be the same for a retry to be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The fingerprint of an operation by `owner` with these arguments.
    pub(crate) fn of(operation: &str, owner: Option<&str>, target: &str, arguments: Value) -> Fingerprint {
        let request = json!({"operation": operation, "owner": owner, "on": target, "with": arguments});
        Fingerprint(blake3::hash(canonical(&request).as_bytes()).to_hex().to_string())
    }

    /// A recorded one.
    pub(in crate::domain) fn recorded(hex: String) -> Fingerprint {
        Fingerprint(hex)
    }

    /// 64 hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.0
    }
}

/// In a node's record: the request that made this version, and what of its answer the record itself doesn't say.
#[derive(Clone, Debug, PartialEq)]
pub struct LastWrite {
    /// The receipt's name.
    pub receipt: String,
    /// The request's fingerprint.
    pub fingerprint: Fingerprint,
    /// The rest of the answer.
    pub answer: Value,
}

/// JSON in canonical form: no spaces, each object's fields in the order of their names. Numbers stay as written.
pub(in crate::domain) fn canonical(value: &Value) -> String {
    sorted(value).to_string()
}

/// The blake3 hash of that, in 64 hexadecimal digits: it stays when the value goes.
pub(in crate::domain) fn canonical_hash(value: &Value) -> String {
    blake3::hash(canonical(value).as_bytes()).to_hex().to_string()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            fields.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect()
        }
        other => other.clone(),
    }
}
