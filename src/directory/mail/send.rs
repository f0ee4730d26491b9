//! Sending: under the next number, and with a key once.

use super::{Directory, FOLDER, STRIDE, message_key};
use crate::directory::receipts::{Request, receipt_key};
use crate::directory::update::ROUNDS;
use crate::domain::{
    self, Answer, ByClaim, Fingerprint, Head, KeyKind, Letter, MailAnswer, MailName, MailReason, MailRefusal,
    Message, Sending, SendingState, Sent, decode_sending,
};
use crate::error::{Error, Result};
use crate::store::Key;

/// After so many collisions pauses grow no more: each collision is somebody else's message, so there is progress.
const CALM: u32 = 6;

/// A key under which a message is sent once.
struct Once {
    request: Request,
    kind: KeyKind,
}

/// What became of a number.
enum Tried {
    /// The message stands under it, by this call or by an earlier one.
    Mine(Sent),
    /// It is no use: taken by another, or not above the floor. Go on after this one.
    Lost(u64),
    Refused(MailRefusal),
}

impl Directory {
    /// Sends a message to the box `to`, which is made by its first message.
    ///
    /// With a receipt ([`Directory::with_receipt`]) or a work key it is sent once. Of a message without either: a
    /// sender frozen in this call for longer than messages are kept by [`Directory::prune`] may send it twice.
    pub fn send(&self, to: &MailName, letter: &Letter) -> Result<MailAnswer<Sent>> {
        domain::admit(letter.payload())?;
        let receipt = match &self.receipt {
            Some(key) => Some(Once::new(key.hash(), letter.fingerprint(to), KeyKind::Receipt)?),
            None => None,
        };
        let work = match letter.work(to) {
            Some((name, fingerprint)) => Some(Once::new(name, fingerprint, KeyKind::WorkKey)?),
            None => None,
        };
        if let Some(answer) = self.sent_before(to, receipt.as_ref())? {
            return Ok(answer);
        }
        if let Err(refusal) = self.author(letter)? {
            return Ok(Err(refused(to, refusal)));
        }
        match (&work, &receipt) {
            (None, None) => self.send_new(to, letter),
            (Some(once), None) | (None, Some(once)) => self.send_once(to, letter, once),
            (Some(work), Some(receipt)) => self.send_by_both(to, letter, work, receipt),
        }
    }

    /// The work key decides about the message; the receipt keeps the answer.
    fn send_by_both(
        &self,
        to: &MailName,
        letter: &Letter,
        work: &Once,
        receipt: &Once,
    ) -> Result<MailAnswer<Sent>> {
        if let Some(Err(conflict)) = self.sent_before(to, Some(work))? {
            return Ok(Err(conflict));
        }
        if let Err(conflict) = self.pin(to, receipt)? {
            return Ok(Err(conflict));
        }
        let answer = self.send_once(to, letter, work)?;
        if let Ok(sent) = &answer {
            // The message stands; a retry whose receipt is not settled finds it by its work key.
            let _ = self.settle_sending(&receipt.request, sent);
        }
        Ok(answer)
    }

    fn send_new(&self, to: &MailName, letter: &Letter) -> Result<MailAnswer<Sent>> {
        let mut taken = start(&self.open_box(to)?);
        for round in 0..ROUNDS {
            let number = self.end(to, taken)?;
            match self.try_number(to, letter, number, None)? {
                Tried::Mine(sent) => return Ok(Ok(sent)),
                Tried::Refused(refusal) => return Ok(Err(refusal)),
                Tried::Lost(after) => taken = after,
            }
            self.pause_after(round.min(CALM))?;
        }
        Err(self.too_many(to))
    }

    /// The key's record names the number aimed at, and moves to another only by a swap, once that number is taken
    /// by another message or has fallen to the floor. So however many retries there are, and wherever they were
    /// stopped, they all try the same number, and one of them gets it.
    fn send_once(&self, to: &MailName, letter: &Letter, once: &Once) -> Result<MailAnswer<Sent>> {
        let key = &once.request.key;
        for round in 0..ROUNDS {
            let bytes = self.store.read(key)?;
            let taken = match self.sending(once, bytes.as_deref())? {
                Some(Sending { fingerprint, .. }) if fingerprint != once.request.fingerprint => {
                    return Ok(Err(once.conflict(to, fingerprint)));
                }
                Some(Sending { state: SendingState::Sent(sent), .. }) => {
                    self.store.confirm(key)?;
                    return Ok(Ok(sent));
                }
                Some(Sending { state: SendingState::Aims(number), .. }) => {
                    match self.try_number(to, letter, number, Some(once))? {
                        Tried::Mine(sent) => {
                            // The message stands; whoever looks for it by its key finds it under the number aimed at.
                            let _ = self.settle_sending(&once.request, &sent);
                            return Ok(Ok(sent));
                        }
                        Tried::Refused(refusal) => return Ok(Err(refusal)),
                        Tried::Lost(after) => after,
                    }
                }
                Some(Sending { state: SendingState::Pinned, .. }) | None => start(&self.open_box(to)?),
            };
            let aim = SendingState::Aims(self.end(to, taken)?);
            let next = self.encode_sending(&once.request.fingerprint, aim)?;
            self.swap_cell(key, bytes.as_deref(), &next, round.min(CALM))?;
        }
        Err(self.too_many(to))
    }

    /// Publishes the message under `number`, unless that is taken. By what it finds a retry knows its own message.
    fn try_number(&self, to: &MailName, letter: &Letter, number: u64, once: Option<&Once>) -> Result<Tried> {
        let floor = self.head(to)?.says.floor;
        if number <= floor {
            return Ok(Tried::Lost(floor));
        }
        let key = message_key(to, number)?;
        let name = once.map(|once| once.request.name.as_str());
        self.confirm_folder_before(to, number)?;
        let claim = match self.author(letter)? {
            Ok(claim) => claim,
            Err(refusal) => return Ok(Tried::Refused(refused(to, refusal))),
        };
        let mine = letter.message(to, number, self.host.now().wall_ms, claim, name);
        let published = self.store.publish(&key, &encode_within_limit(&mine)?)?;
        let sent = if published {
            Sent::of(&mine, false)
        } else {
            match self.message(to, number)? {
                Some(found) if name.is_some() && found.request.as_deref() == name => {
                    self.store.confirm(&key)?;
                    Sent::of(&found, true)
                }
                _ => return Ok(Tried::Lost(number)),
            }
        };
        let head = self.head(to)?.says;
        if number <= head.floor {
            if published {
                let _ = self.store.remove(&key); // nobody reads below the floor
            }
            return Ok(Tried::Lost(head.floor));
        }
        if number >= head.last + STRIDE {
            self.advance(to, number);
        }
        Ok(Tried::Mine(sent))
    }

    /// Who knows the token sends the message, in the name of the claim.
    fn author(&self, letter: &Letter) -> Result<Answer<Option<ByClaim>>> {
        let Some((id, token)) = letter.claim() else { return Ok(Ok(None)) };
        let checked = self.check(id, token)?;
        Ok(checked.map(|checked| Some(ByClaim { id: id.clone(), generation: checked.node.generation })))
    }

    /// The head, which is there before the first message.
    fn open_box(&self, to: &MailName) -> Result<Head> {
        self.change_head(to, |_| None)
    }

    /// Moves the head on. Only a hint: one try, and if it fails a later sender has another.
    fn advance(&self, to: &MailName, number: u64) {
        let moved = || -> Result<bool> {
            let head = self.head(to)?;
            let next = Head { last: head.says.last.max(number), ..head.says };
            self.swap_cell(&head.key, head.bytes.as_deref(), &next.encode(self.write_id()?), 0)
        };
        let _ = moved();
    }

    /// A message that survives a power cut has all before it survive too. Within a folder its own syncing sees to
    /// that; the first one of a folder makes sure of the folder before.
    fn confirm_folder_before(&self, to: &MailName, number: u64) -> Result<()> {
        match number.checked_sub(1).filter(|_| number.is_multiple_of(FOLDER)) {
            Some(before) if self.is_taken(to, before)? => self.store.confirm(&message_key(to, before)?),
            _ => Ok(()),
        }
    }

    /// What was answered to this request before; a conflict, if the key stands for another one.
    fn sent_before(&self, to: &MailName, once: Option<&Once>) -> Result<Option<MailAnswer<Sent>>> {
        let Some(once) = once else { return Ok(None) };
        let bytes = self.store.read(&once.request.key)?;
        Ok(match self.sending(once, bytes.as_deref())? {
            Some(Sending { fingerprint, .. }) if fingerprint != once.request.fingerprint => {
                Some(Err(once.conflict(to, fingerprint)))
            }
            Some(Sending { state: SendingState::Sent(sent), .. }) => {
                self.store.confirm(&once.request.key)?;
                Some(Ok(sent))
            }
            _ => None,
        })
    }

    /// Makes the key stand for this request and no other.
    fn pin(&self, to: &MailName, once: &Once) -> Result<MailAnswer<()>> {
        for round in 0..ROUNDS {
            let bytes = self.store.read(&once.request.key)?;
            match self.sending(once, bytes.as_deref())? {
                Some(Sending { fingerprint, .. }) if fingerprint != once.request.fingerprint => {
                    return Ok(Err(once.conflict(to, fingerprint)));
                }
                Some(_) => return Ok(Ok(())),
                None => {
                    let next = self.encode_sending(&once.request.fingerprint, SendingState::Pinned)?;
                    self.swap_cell(&once.request.key, bytes.as_deref(), &next, round)?;
                }
            }
        }
        Err(self.contended(&once.request.key))
    }

    /// Writes into the key's record that the message stands. One that was pruned is not made again.
    fn settle_sending(&self, request: &Request, sent: &Sent) -> Result<()> {
        for round in 0..ROUNDS {
            let Some(bytes) = self.store.read(&request.key)? else { return Ok(()) };
            match decode_sending(&bytes).map_err(|why| self.unreadable(&request.key, &why))? {
                Some(Sending { state: SendingState::Sent(_), .. }) | None => return Ok(()),
                Some(sending) if sending.fingerprint != request.fingerprint => return Ok(()),
                Some(_) => {}
            }
            let next = self.encode_sending(&request.fingerprint, SendingState::Sent(sent.clone()))?;
            if self.swap_cell(&request.key, Some(&bytes), &next, round)? {
                return Ok(());
            }
        }
        Err(self.contended(&request.key))
    }

    /// Settles the key with which a message was sent that is above the floor.
    pub(super) fn settle_key_of(&self, message: &Message) -> Result<()> {
        let Some(name) = &message.request else { return Ok(()) };
        let key = receipt_key(name)?;
        let Some(bytes) = self.store.read(&key)? else { return Ok(()) };
        match decode_sending(&bytes).map_err(|why| self.unreadable(&key, &why))? {
            Some(Sending { state: SendingState::Aims(number), fingerprint, .. })
                if number == message.number =>
            {
                let request = Request { key, name: name.clone(), fingerprint };
                self.settle_sending(&request, &Sent::of(message, true))
            }
            _ => Ok(()),
        }
    }

    /// Is this the record of a message's key?
    pub(in crate::directory) fn is_of_mail(&self, key: &Key) -> Result<bool> {
        let bytes = self.store.read(key)?.unwrap_or_default();
        let sending = decode_sending(&bytes).map_err(|why| self.unreadable(key, &why))?;
        Ok(sending.is_some_and(|sending| sending.state != SendingState::Pinned))
    }

    fn sending(&self, once: &Once, bytes: Option<&[u8]>) -> Result<Option<Sending>> {
        decode_sending(bytes.unwrap_or_default()).map_err(|why| self.unreadable(&once.request.key, &why))
    }

    fn encode_sending(&self, fingerprint: &Fingerprint, state: SendingState) -> Result<Vec<u8>> {
        let sending = Sending { fingerprint: fingerprint.clone(), at_ms: self.host.now().wall_ms, state };
        Ok(sending.encode(self.write_id()?))
    }

    fn too_many(&self, to: &MailName) -> Error {
        match self.head(to) {
            Ok(head) => self.contended(&head.key),
            Err(error) => error,
        }
    }
}

impl Once {
    fn new(name: String, fingerprint: Fingerprint, kind: KeyKind) -> Result<Once> {
        Ok(Once { request: Request { key: receipt_key(&name)?, name, fingerprint }, kind })
    }

    fn conflict(&self, to: &MailName, recorded: Fingerprint) -> MailRefusal {
        let shown = self.request.fingerprint.clone();
        MailRefusal { on: to.clone(), reason: self.kind.conflict(recorded, shown) }
    }
}

/// From where a sender probes.
fn start(head: &Head) -> u64 {
    head.last.max(head.floor)
}

fn refused(to: &MailName, refusal: domain::Refusal) -> MailRefusal {
    MailRefusal { on: to.clone(), reason: MailReason::Claim(Box::new(refusal)) }
}

fn encode_within_limit(message: &Message) -> Result<Vec<u8>> {
    let bytes = message.encode();
    let most = domain::MAX_RECORD_BYTES;
    if bytes.len() > most {
        let why = format!("the message would have {} bytes, and {most} are the most; not sent", bytes.len());
        return Err(Error::usage(why).hint("keep what is large in a file, and send where it is"));
    }
    Ok(bytes)
}
