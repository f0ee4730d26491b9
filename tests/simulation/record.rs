//! A record as the oracle reads it: from its bytes, by nobody's code but this.

use std::collections::BTreeMap;

use claimdir::host::Life;
use claimdir::time::parse_rfc3339;
use serde_json::Value;

use super::clock::{Reading, boot_name};

#[derive(Clone, Debug)]
pub struct Record {
    pub version: u64,
    pub generation: u64,
    pub write: String,
    pub state: String,
    pub claim: Option<Claim>,
    pub ended_by: Option<String>,
    /// The receipt that its write was made with.
    pub receipt: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub token: String,
    ends_mono_ms: i64,
    boot: String,
    ends_wall_ms: i64,
    lease_ms: i64,
    process: Option<(u32, bool, String)>,
}

impl Record {
    /// A node nobody has owned.
    pub fn none() -> Record {
        let (write, state) = (String::new(), "ready".to_owned());
        Record { version: 0, generation: 0, write, state, claim: None, ended_by: None, receipt: None }
    }

    pub fn of(bytes: &[u8]) -> Option<Record> {
        if bytes.is_empty() {
            return Some(Record::none());
        }
        let json: Value = serde_json::from_slice(bytes).ok()?;
        let state = json["state"].as_str()?.to_owned();
        Some(Record {
            version: json["version"].as_u64()?,
            generation: json["generation"].as_u64()?,
            write: json["write"].as_str()?.to_owned(),
            claim: if state == "claimed" { Some(Claim::of(&json["claim"])?) } else { None },
            ended_by: json["outcome"]["token_hash"].as_str().map(str::to_owned),
            receipt: json["last_write"]["receipt"].as_str().map(str::to_owned),
            state,
        })
    }

    pub fn token(&self) -> Option<&str> {
        self.claim.as_ref().map(|claim| claim.token.as_str())
    }

    pub fn is_live(&self, now: Reading, lives: &BTreeMap<u32, Life>) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.is_live(now, lives))
    }
}

impl Claim {
    fn of(json: &Value) -> Option<Claim> {
        let process = &json["process"];
        let process = process["pid"].as_u64().map(|pid| {
            let boot = process["boot"].as_str().unwrap_or_default().to_owned();
            (pid as u32, process["until_exit"] == true, boot)
        });
        Some(Claim {
            token: json["token_hash"].as_str()?.to_owned(),
            ends_mono_ms: json["clock"]["ends_mono_ms"].as_i64()?,
            boot: json["clock"]["boot"].as_str()?.to_owned(),
            ends_wall_ms: parse_rfc3339(json["expires_at"].as_str()?)?,
            lease_ms: json["lease_ms"].as_i64()?,
            process,
        })
    }

    /// Milliseconds to its end: by the clock that it was counted by, and after a power cut by the other.
    fn remaining_ms(&self, now: Reading) -> i64 {
        if self.boot == boot_name(now.boot) {
            self.ends_mono_ms - now.mono_ms
        } else {
            self.ends_wall_ms - now.wall_ms
        }
    }

    pub fn is_live(&self, now: Reading, lives: &BTreeMap<u32, Life>) -> bool {
        let here = |boot: &String| *boot == boot_name(now.boot);
        if let Some((pid, until_exit, boot)) = &self.process
            && here(boot)
        {
            match lives.get(pid) {
                Some(Life::Gone) => return false,
                Some(Life::Alive) if *until_exit => return true,
                _ => {}
            }
        }
        self.remaining_ms(now) > 0
    }

    /// How long it may stand in the way: an end that can't be believed stands for a whole lease.
    pub fn stands_ms(&self, now: Reading) -> i64 {
        self.remaining_ms(now).clamp(0, self.lease_ms)
    }

    /// Its end lies further away than the lease is long, and can't be believed.
    pub fn is_adrift(&self, now: Reading) -> bool {
        self.remaining_ms(now) > self.lease_ms
    }
}
