//! What lies in a mail folder: messages, a head a box, a cursor a reader; and the record of a key.

use serde_json::{Map, Value, json};

use super::{ByClaim, MailName, Sent};
use crate::domain::codec::{self, FORMAT, Fields, Malformed};
use crate::domain::receipt::Carrier;
use crate::domain::record::{Fingerprint, LastWrite, WriteId};
use crate::id::NodeId;
use crate::time::rfc3339;

/// A message: written once, under a number that no other has.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The box.
    pub to: MailName,
    /// Its number: 1, 2, 3 … without a gap.
    pub number: u64,
    /// Who sent it; a name for people, it proves nothing.
    pub from: String,
    /// When: milliseconds since 1970.
    pub sent_ms: i64,
    /// The claim under which it was sent.
    pub claim: Option<ByClaim>,
    /// The name of the work key's or the receipt's record, if it was sent with one.
    pub(crate) request: Option<String>,
    /// What it says.
    pub payload: Value,
}

/// A box as its head says it. It may be behind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    pub(crate) of: MailName,
    /// A number that is taken, or not above the floor: a sender probes from here.
    pub(crate) last: u64,
    /// Messages up to here were pruned: what stands under such a number is no message.
    pub(crate) floor: u64,
    pub(crate) extra: Map<String, Value>,
}

/// A reader's two positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Cursor {
    /// The box.
    pub of: MailName,
    /// The reader.
    pub reader: MailName,
    /// The highest number that the reader was ever handed.
    pub handed_out: u64,
    /// Up to where the reader has dealt with them.
    pub acknowledged: u64,
    /// The request that moved it last, if it came with a receipt.
    pub(crate) last_write: Option<LastWrite>,
    pub(crate) extra: Map<String, Value>,
}

/// A work key or a receipt as its record says it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sending {
    pub(crate) fingerprint: Fingerprint,
    /// When it was written: milliseconds since 1970.
    pub(crate) at_ms: i64,
    pub(crate) state: SendingState,
}

/// How far a message with a key has come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SendingState {
    /// The key stands for this request, and for nothing else.
    Pinned,
    /// The message gets this number and no other, as long as no other message has it.
    Aims(u64),
    /// It stands.
    Sent(Sent),
}

fn broken(what: &str) -> Malformed {
    Malformed::Broken(what.to_owned())
}

fn start(what: &str, bytes: &[u8]) -> Result<Fields, Malformed> {
    let mut fields = Fields::parse(what, bytes)?;
    codec::check_format(&mut fields)?;
    Ok(fields)
}

/// The fields that every cell begins with. `write` makes its bytes differ from all others.
fn cell(write: WriteId) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("format".to_owned(), json!(FORMAT));
    map.insert("write".to_owned(), json!(write.to_string()));
    map
}

fn name(fields: &mut Fields, field: &str) -> Result<MailName, Malformed> {
    fields.with(field, |text: String| MailName::new(text).ok())
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut map = Map::new();
        let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
        put("format", json!(FORMAT));
        put("box", json!(self.to.as_str()));
        put("number", json!(self.number));
        put("from", json!(self.from));
        put("sent_at", json!(rfc3339(self.sent_ms)));
        if let Some(ByClaim { id, generation }) = &self.claim {
            put("claim", json!({"id": id.as_str(), "generation": generation}));
        }
        if let Some(request) = &self.request {
            put("request", json!(request));
        }
        put("payload", self.payload.clone());
        // On one line: a payload may be large, and indenting would make it larger.
        let mut bytes = Value::Object(map).to_string().into_bytes();
        bytes.push(b'\n');
        bytes
    }

    /// The box of the message that `bytes` say.
    pub(crate) fn box_of(bytes: &[u8]) -> Option<MailName> {
        let mut fields = start("the message", bytes).ok()?;
        name(&mut fields, "box").ok()
    }

    /// The message that `bytes` say, which must be this one.
    pub(crate) fn decode(to: &MailName, number: u64, bytes: &[u8]) -> Result<Message, Malformed> {
        let mut fields = start("the message", bytes)?;
        let message = Message {
            to: name(&mut fields, "box")?,
            number: fields.count("number")?,
            from: fields.take("from")?,
            sent_ms: fields.time("sent_at")?,
            claim: fields.object("claim", |mut claim| {
                let id = claim.with("id", |text: String| NodeId::new(text).ok())?;
                Ok(ByClaim { id, generation: claim.count("generation")? })
            })?,
            request: fields.take("request")?,
            payload: fields.take("payload")?,
        };
        if message.to != *to || message.number != number {
            return Err(Malformed::Broken(format!(
                "it is message {} of the box {:?}",
                message.number,
                message.to.as_str()
            )));
        }
        Ok(message)
    }
}

impl Head {
    pub(crate) fn new(of: MailName) -> Head {
        Head { of, last: 0, floor: 0, extra: Map::new() }
    }

    pub(crate) fn encode(&self, write: WriteId) -> Vec<u8> {
        let mut map = cell(write);
        map.insert("box".to_owned(), json!(self.of.as_str()));
        map.insert("last".to_owned(), json!(self.last));
        map.insert("floor".to_owned(), json!(self.floor));
        codec::to_bytes(&with_unknown(map, &self.extra))
    }

    /// The head that `bytes` say; `None`: it was made and not yet written.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut fields = start("the head", bytes)?;
        let of = name(&mut fields, "box")?;
        let (last, floor) = (fields.count("last")?, fields.count("floor")?);
        let _: String = fields.take("write")?;
        if floor > last {
            return Err(broken("its floor lies above its last message"));
        }
        Ok(Some(Head { of, last, floor, extra: fields.rest() }))
    }
}

impl Cursor {
    pub(crate) fn new(of: MailName, reader: MailName) -> Cursor {
        Cursor { of, reader, handed_out: 0, acknowledged: 0, last_write: None, extra: Map::new() }
    }

    pub(crate) fn encode(&self, write: WriteId) -> Vec<u8> {
        let mut map = cell(write);
        map.extend(self.to_json());
        codec::to_bytes(&map)
    }

    /// The cursor that `bytes` say; `None`: it was made and not yet written.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<Cursor>, Malformed> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut fields = start("the cursor", bytes)?;
        let _: String = fields.take("write")?;
        Cursor::of(fields).map(Some)
    }
}

impl Carrier for Cursor {
    const FIELD: &'static str = "cursor";

    fn last_write(&self) -> Option<&LastWrite> {
        self.last_write.as_ref()
    }

    fn without_last_write(self) -> Cursor {
        Cursor { last_write: None, ..self }
    }

    fn to_json(&self) -> Map<String, Value> {
        let mut map = Map::new();
        map.insert("box".to_owned(), json!(self.of.as_str()));
        map.insert("reader".to_owned(), json!(self.reader.as_str()));
        map.insert("handed_out".to_owned(), json!(self.handed_out));
        map.insert("acknowledged".to_owned(), json!(self.acknowledged));
        if let Some(last) = &self.last_write {
            map.insert("last_write".to_owned(), codec::last_write_json(last));
        }
        with_unknown(map, &self.extra)
    }

    fn of(mut fields: Fields) -> Result<Cursor, Malformed> {
        let (of, reader) = (name(&mut fields, "box")?, name(&mut fields, "reader")?);
        let (handed_out, acknowledged) = (fields.count("handed_out")?, fields.count("acknowledged")?);
        let last_write = fields.object("last_write", codec::last_write)?;
        if acknowledged > handed_out {
            return Err(broken("it acknowledges more than was handed out"));
        }
        Ok(Cursor { of, reader, handed_out, acknowledged, last_write, extra: fields.rest() })
    }
}

/// What this program doesn't know never covers what it writes.
fn with_unknown(mut map: Map<String, Value>, unknown: &Map<String, Value>) -> Map<String, Value> {
    for (name, value) in unknown {
        map.entry(name.clone()).or_insert_with(|| value.clone());
    }
    map
}

/// The key's record that `bytes` say; `None`: it was made and not yet written. A receipt of a request that is no
/// message reads as pinned; its fingerprint is another one.
pub(crate) fn decode_sending(bytes: &[u8]) -> Result<Option<Sending>, Malformed> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut fields = start("the receipt", bytes)?;
    let fingerprint = Fingerprint::recorded(fields.take("fingerprint")?);
    let at_ms = fields.time("at")?;
    let aim = fields.object("aims_at", |mut aim| aim.count("number"))?;
    let sent = fields.object("sent", |mut sent| {
        let (number, from) = (sent.count("number")?, sent.take("from")?);
        Ok(Sent { number, from, sent_ms: sent.time("sent_at")?, replay: true })
    })?;
    let state = match (sent, aim) {
        (Some(sent), _) => SendingState::Sent(sent),
        (None, Some(number)) => SendingState::Aims(number),
        (None, None) => SendingState::Pinned,
    };
    Ok(Some(Sending { fingerprint, at_ms, state }))
}

impl Sending {
    pub(crate) fn encode(&self, write: WriteId) -> Vec<u8> {
        let mut map = cell(write);
        map.insert("at".to_owned(), json!(rfc3339(self.at_ms)));
        map.insert("fingerprint".to_owned(), json!(self.fingerprint.hex()));
        match &self.state {
            SendingState::Pinned => {}
            SendingState::Aims(number) => {
                map.insert("aims_at".to_owned(), json!({"number": number}));
            }
            SendingState::Sent(Sent { number, from, sent_ms, .. }) => {
                let sent = json!({"number": number, "from": from, "sent_at": rfc3339(*sent_ms)});
                map.insert("sent".to_owned(), sent);
            }
        }
        codec::to_bytes(&map)
    }
}
