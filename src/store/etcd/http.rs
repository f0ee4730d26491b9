//! Requests to etcd's JSON gateway: to one endpoint after the other, within a bounded time.

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use ureq::{Agent, Timeout};

use super::{Address, tls};
use crate::error::{Code, Error, Result};
use crate::host::Host;

/// How long it may take to get a connection.
const CONNECT: Duration = Duration::from_secs(2);
/// How long one try of a request may take.
const TRY: Duration = Duration::from_secs(4);
/// How long all tries of a request may take together: longer than a cluster needs to elect another leader.
const ALL: Duration = Duration::from_secs(12);
/// The same while nobody is there at all: no endpoint accepts a connection.
const NOBODY: Duration = Duration::from_secs(3);
/// The longest pause between two tries.
const PAUSE: Duration = Duration::from_millis(400);
/// How long a stream of changes is listened to before it is asked for anew.
pub(super) const LISTEN: Duration = Duration::from_secs(30);
/// The most bytes of an answer: a page of records.
const MOST: u64 = 256 << 20;

/// An answer.
pub(super) struct Reply<T> {
    pub(super) says: T,
    /// May an earlier try of the same request have been carried out too?
    pub(super) in_doubt: bool,
}

/// No answer.
pub(super) struct Failure {
    pub(super) error: Error,
    /// May the request have been carried out all the same?
    pub(super) in_doubt: bool,
}

impl Failure {
    /// As an error, for who can't tell whether it was carried out.
    pub(super) fn told(self) -> Error {
        match self.in_doubt {
            true => self
                .error
                .hint("what was asked for may have been done all the same: look before trying again"),
            false => self.error,
        }
    }
}

/// What became of one try.
enum Fault {
    /// Trying again may help.
    Passing { why: String, sent: bool },
    /// The user's token is not known any more.
    Unknown,
    /// Nothing helps.
    Final(Error),
}

/// Who talks to etcd. Threads share it.
pub(super) struct Client {
    agent: Agent,
    address: Address,
    endpoints: Vec<String>,
    /// Which endpoint answered last.
    current: AtomicUsize,
    /// What a user's name and password were exchanged for.
    token: Mutex<Option<String>>,
    pub(super) host: Arc<dyn Host>,
}

impl Client {
    pub(super) fn new(address: &Address, host: Arc<dyn Host>) -> Result<Client> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .no_delay(true)
            .timeout_connect(Some(CONNECT))
            .tls_config(tls::config(address)?)
            .build();
        // Many processes spread over the endpoints.
        let endpoints = address.endpoints();
        let first = usize::try_from(host.random()? % endpoints.len().max(1) as u128).unwrap_or(0);
        let (agent, current) = (config.new_agent(), AtomicUsize::new(first));
        Ok(Client { agent, address: address.clone(), endpoints, current, token: Mutex::default(), host })
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    fn endpoint(&self) -> (usize, &str) {
        let at = self.current.load(Ordering::Relaxed);
        (at, self.endpoints.get(at % self.endpoints.len().max(1)).map_or("", String::as_str))
    }

    /// Another one, unless another thread has gone there already.
    fn leave(&self, at: usize) {
        let next = at.wrapping_add(1);
        let _ = self.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Asks until there is an answer, for a bounded time.
    pub(super) fn call<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<Reply<T>, Failure> {
        let bytes = body.to_string();
        let start = self.host.mono_ns();
        let (mut in_doubt, mut connected, mut renewed) = (false, false, false);
        for round in 0_u32.. {
            let (at, endpoint) = self.endpoint();
            let fault = match self.authorized(endpoint, path, bytes.as_bytes()) {
                Ok(says) => return Ok(Reply { says, in_doubt }),
                Err(fault) => fault,
            };
            let why = match fault {
                Fault::Passing { why, sent } => {
                    in_doubt |= sent;
                    connected |= sent;
                    why
                }
                Fault::Unknown if !renewed => {
                    renewed = true;
                    *self.token() = None;
                    continue;
                }
                Fault::Unknown => return Err(Failure { error: denied("the user's token"), in_doubt }),
                Fault::Final(error) => return Err(Failure { error, in_doubt }),
            };
            self.leave(at);
            let most = if connected { ALL } else { NOBODY };
            let passed = Duration::from_nanos(self.host.mono_ns().saturating_sub(start));
            if passed >= most {
                return Err(Failure { error: self.unavailable(&why), in_doubt });
            }
            // The other endpoints are asked at once.
            let count = u32::try_from(self.endpoints.len()).unwrap_or(1).max(1);
            if (round + 1).is_multiple_of(count) {
                self.pause(round / count)?;
            }
        }
        Err(Failure { error: self.unavailable("no answer"), in_doubt })
    }

    fn pause(&self, round: u32) -> Result<(), Failure> {
        let random = self.host.random().map_err(|error| Failure { error, in_doubt: true })?;
        let most = PAUSE.min(Duration::from_millis(20) * (1 << round.min(6)));
        let share = f64::from(random as u32) / f64::from(u32::MAX);
        self.host.pause(most.mul_f64(0.25 + 0.75 * share));
        Ok(())
    }

    fn unavailable(&self, why: &str) -> Error {
        let hosts = self.address.hosts().join(", ");
        Error::new(Code::StoreUnavailable, format!("etcd at {hosts} does not answer: {why}"))
            .hint("see that most of its machines run and can be reached from here, then try again; a claim that you hold lasts as long as its lease")
    }

    fn token(&self) -> MutexGuard<'_, Option<String>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One try, as the user that the address names, if it does.
    fn authorized<T: DeserializeOwned>(&self, endpoint: &str, path: &str, body: &[u8]) -> Result<T, Fault> {
        let token = self.known_token(endpoint)?;
        let mut answer = self.send(endpoint, path, body, token.as_deref(), Some(TRY))?;
        let bytes = answer.body_mut().with_config().limit(MOST).read_to_vec();
        let bytes = bytes.map_err(|error| fault_of(&error))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Fault::Final(strange(&format!("an answer to {path} can't be read: {error}"))))
    }

    fn known_token(&self, endpoint: &str) -> Result<Option<String>, Fault> {
        let Some((name, password)) = self.address.user().map_err(Fault::Final)? else { return Ok(None) };
        if let Some(token) = self.token().clone() {
            return Ok(Some(token));
        }
        let body = json!({"name": name, "password": password}).to_string();
        let mut answer = match self.send(endpoint, "/v3/auth/authenticate", body.as_bytes(), None, Some(TRY))
        {
            // Nothing of what is asked for has been sent yet.
            Err(Fault::Passing { why, .. }) => return Err(Fault::Passing { why, sent: false }),
            answer => answer?,
        };
        let bytes = answer.body_mut().read_to_vec().map_err(|error| fault_of(&error))?;
        let says: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let token =
            says["token"].as_str().ok_or_else(|| Fault::Final(strange("it gave no token")))?.to_owned();
        *self.token() = Some(token.clone());
        Ok(Some(token))
    }

    fn send(
        &self,
        endpoint: &str,
        path: &str,
        body: &[u8],
        token: Option<&str>,
        whole: Option<Duration>,
    ) -> Result<ureq::http::Response<ureq::Body>, Fault> {
        let mut request =
            self.agent.post(format!("{endpoint}{path}")).header("Content-Type", "application/json");
        if let Some(token) = token {
            request = request.header("Authorization", token);
        }
        let config = request.config().timeout_global(whole);
        let request = match whole {
            Some(_) => config.build(),
            None => config.timeout_recv_response(Some(TRY)).timeout_recv_body(Some(LISTEN)).build(),
        };
        let mut answer = request.send(body).map_err(|error| fault_of(&error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status().as_u16();
        let bytes = answer.body_mut().with_config().limit(64 << 10).read_to_vec().unwrap_or_default();
        Err(refused(status, &bytes))
    }

    /// A stream of lines, for as long as `LISTEN`.
    pub(super) fn stream(&self, path: &str, body: &[u8]) -> Result<impl Read + Send + use<>> {
        let (at, endpoint) = self.endpoint();
        let failed = |fault| {
            self.leave(at);
            match fault {
                Fault::Passing { why, .. } => self.unavailable(&why),
                Fault::Unknown => {
                    *self.token() = None;
                    denied("the user's token")
                }
                Fault::Final(error) => error,
            }
        };
        let token = self.known_token(endpoint).map_err(failed)?;
        let answer = self.send(endpoint, path, body, token.as_deref(), None).map_err(failed)?;
        Ok(answer.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// What an endpoint says at `path` by itself, and its clock as its answer names it, in whole seconds since 1970.
    pub(super) fn look(&self, endpoint: &str, path: &str) -> Result<(Value, Option<i64>), String> {
        let request = self.agent.get(format!("{endpoint}{path}")).config().timeout_global(Some(TRY)).build();
        let mut answer = request.call().map_err(|error| told(&error))?;
        let date = answer.headers().get("date").and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
        let says = answer.body_mut().read_to_vec().unwrap_or_default();
        let seconds = date.map(|date| date.timestamp().as_second());
        Ok((serde_json::from_slice(&says).unwrap_or_default(), seconds))
    }

    /// Each endpoint as people know it and as it is asked.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = (&str, &str)> {
        let hosts = self.address.hosts().iter().map(String::as_str);
        hosts.zip(self.endpoints.iter().map(String::as_str))
    }
}

/// In words of this program, in one line.
fn told(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Timeout(_) => "it took too long".to_owned(),
        ureq::Error::HostNotFound => "its host name is not known".to_owned(),
        error => error.to_string().replace('\n', " "),
    }
}

fn fault_of(error: &ureq::Error) -> Fault {
    use std::io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    let sent = match error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => false,
        ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => false,
        // What the other side sent is no TLS that is trusted here.
        error if is_of_tls(error) => {
            let message = format!("no safe connection to etcd: {}", told(error));
            return Fault::Final(Error::new(Code::StoreUnavailable, message).hint(tls::hint(error)));
        }
        ureq::Error::Io(error) => {
            !matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable)
        }
        _ => true,
    };
    Fault::Passing { why: told(error), sent }
}

fn is_of_tls(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
        error => matches!(error, ureq::Error::Tls(_) | ureq::Error::Rustls(_)),
    }
}

/// An answer that is none.
fn refused(status: u16, body: &[u8]) -> Fault {
    let says: Value = serde_json::from_slice(body).unwrap_or_default();
    let why = says["message"].as_str().or(says["error"].as_str()).unwrap_or("no reason given");
    let why: String = why.chars().filter(|c| !c.is_control()).take(200).collect();
    if why.contains("invalid auth token") || why.contains("revision of auth store is old") {
        return Fault::Unknown;
    }
    if why.contains("database space exceeded") {
        let message = format!("etcd has no space left: {why}");
        let hint = "see etcd's documentation on compaction, defragmentation and the NOSPACE alarm; nothing was changed";
        return Fault::Final(Error::new(Code::NoSpace, message).hint(hint));
    }
    if why.contains("request is too large") {
        return Fault::Final(too_large(&why));
    }
    match status {
        400 if why.contains("user name") || why.contains("authentication") => Fault::Final(denied(&why)),
        401 | 403 => Fault::Final(denied(&why)),
        // Too busy, or without a leader for now; whether it was carried out is not said.
        408 | 429 | 500.. => Fault::Passing { why, sent: true },
        _ => Fault::Final(strange(&format!("it answers {status}: {why}"))),
    }
}

pub(super) fn too_large(what: &str) -> Error {
    Error::usage(format!("{what}: that is more than etcd takes at once; nothing was changed"))
        .hint("keep what is large in a file, and record where it is")
}

fn denied(why: &str) -> Error {
    Error::new(Code::PermissionDenied, format!("etcd denied access: {why}"))
        .hint("name a user that may read and write there: etcd://USER@HOST/PREFIX, the password in CLAIM_ETCD_PASSWORD")
}

pub(super) fn strange(what: &str) -> Error {
    Error::new(Code::StoreUnavailable, format!("etcd is not understood: {what}"))
        .hint("is it etcd 3.4 or newer that listens there, with its JSON gateway on?")
}
