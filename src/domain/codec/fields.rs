//! An object's fields.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Malformed;
use crate::time::parse_rfc3339;

/// What counts something is below this: there is always a next number.
pub(super) const END_OF_COUNTS: u64 = u64::MAX / 2;

/// An object's fields, taken out one by one; what is left is unknown and kept.
pub(crate) struct Fields(pub(super) Map<String, Value>);

impl Fields {
    /// The fields of the object that `bytes` are, which is called `what`.
    pub(in crate::domain) fn parse(what: &str, bytes: &[u8]) -> Result<Fields, Malformed> {
        if bytes.iter().all(|b| *b == 0) {
            return Err(Malformed::Broken(format!("{what} holds {} zero bytes", bytes.len())));
        }
        let value = serde_json::from_slice(bytes)
            .map_err(|e| Malformed::Broken(format!("{what} is not JSON: {e}")))?;
        Fields::of(what, value)
    }

    pub(in crate::domain) fn of(what: &str, value: Value) -> Result<Fields, Malformed> {
        match value {
            Value::Object(map) => Ok(Fields(map)),
            _ => Err(Malformed::Broken(format!("{what} is not a JSON object"))),
        }
    }

    /// A field of type `T`; one that is not there reads as `null`.
    pub(in crate::domain) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Malformed> {
        self.with(name, Some)
    }

    pub(in crate::domain) fn with<T: DeserializeOwned, U>(
        &mut self,
        name: &str,
        accept: impl FnOnce(T) -> Option<U>,
    ) -> Result<U, Malformed> {
        let value = self.0.shift_remove(name).unwrap_or(Value::Null);
        serde_json::from_value(value)
            .ok()
            .and_then(accept)
            .ok_or_else(|| Malformed::Broken(format!("its field {name:?} is missing or wrong")))
    }

    /// What is left: fields that this program doesn't know.
    pub(in crate::domain) fn rest(self) -> Map<String, Value> {
        self.0
    }

    /// A counter. One so high that it can't be counted on from is wrong.
    pub(in crate::domain) fn count(&mut self, name: &str) -> Result<u64, Malformed> {
        self.with(name, |n: u64| (n < END_OF_COUNTS).then_some(n))
    }

    pub(in crate::domain) fn time(&mut self, name: &str) -> Result<i64, Malformed> {
        self.with(name, |text: String| parse_rfc3339(&text))
    }

    /// A list of objects; one that is not there is empty.
    pub(in crate::domain) fn list<T>(
        &mut self,
        name: &str,
        read: impl Fn(Fields) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let values: Option<Vec<Value>> = self.take(name)?;
        values.unwrap_or_default().into_iter().map(|value| read(Fields::of(name, value)?)).collect()
    }

    pub(in crate::domain) fn object<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Fields) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        match self.0.shift_remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(Fields::of(name, value)?).map(Some),
        }
    }
}
