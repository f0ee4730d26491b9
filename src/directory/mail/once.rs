//! Reading and acknowledging with a receipt: the cursor carries the answer until the receipt has it.

use serde_json::{Value, json};

use super::{Cell, Directory};
use crate::directory::receipts::Request;
use crate::domain::{Cursor, Fingerprint, Found, KeyKind, MailName, MailRefusal};
use crate::error::Result;

/// What a reader's request with a receipt meets.
pub(super) enum Met {
    /// The answer of an earlier call: the cursor as written then, and the rest.
    Answer(Box<Cursor>, Value),
    Refused(MailRefusal),
    /// No effect so far.
    Nothing(Pending),
}

/// A request that has had no effect; `None`: it shows no receipt.
pub(super) struct Pending(Option<(bool, Option<Vec<u8>>)>);

impl Pending {
    pub(super) fn has_receipt(&self) -> bool {
        self.0.is_some()
    }
}

impl Directory {
    /// A reader's request, if it shows a receipt.
    pub(super) fn reader_request(
        &self,
        operation: &str,
        of: &MailName,
        reader: &MailName,
        number: u64,
    ) -> Result<Option<Request>> {
        let fingerprint = || Fingerprint::of(operation, Some(reader.as_str()), of.as_str(), json!([number]));
        self.receipt.as_ref().map(|key| Request::new(key, fingerprint())).transpose()
    }

    /// The cursor was read; now the receipt.
    pub(super) fn meet(&self, request: Option<&Request>, cell: &Cell<Cursor>) -> Result<Met> {
        let Some(request) = request else { return Ok(Met::Nothing(Pending(None))) };
        let (found, bytes) = self.found(request, &cell.key, &cell.says)?;
        Ok(match found {
            Found::Conflict(recorded) => {
                let reason = KeyKind::Receipt.conflict(recorded, request.fingerprint.clone());
                Met::Refused(MailRefusal { on: cell.says.of.clone(), reason })
            }
            Found::Answer { record, answer, .. } => Met::Answer(record, answer),
            Found::NoEffect { begun } => Met::Nothing(Pending(Some((begun, bytes)))),
        })
    }

    /// Swaps the cursor for `next`, which carries the answer if there is a receipt. `false`: look again.
    pub(super) fn move_cursor(
        &self,
        cell: &Cell<Cursor>,
        next: &Cursor,
        request: Option<&Request>,
        pending: Pending,
        answer: Value,
        round: u32,
    ) -> Result<bool> {
        let mut next = Cursor { last_write: None, ..next.clone() };
        if let (Some(request), Pending(Some((begun, bytes)))) = (request, pending) {
            if !begun && !self.begin::<Cursor>(request, None, bytes)? {
                return Ok(false);
            }
            next.last_write = Some(request.write(answer));
        }
        self.settle_last(&cell.key, &cell.says)?;
        let swapped =
            self.swap_cell(&cell.key, cell.bytes.as_deref(), &next.encode(self.write_id()?), round)?;
        if let Some(last) = next.last_write.as_ref().filter(|_| swapped) {
            // The effect stands; a receipt left pending is settled by whoever moves the cursor next.
            let _ = self.settle_receipt(last, &next, None);
        }
        Ok(swapped)
    }
}
