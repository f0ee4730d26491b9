//! `etcd://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/PREFIX`, and `etcds://` for HTTPS, then with
//! `?ca=FILE&cert=FILE&key=FILE` where those are needed.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::error::{Error, Result};

/// The port of a host that names none.
const PORT: &str = "2379";

/// Where a claim directory on etcd is. Shown without its user and password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    secure: bool,
    hosts: Vec<String>,
    user: Option<(String, Option<String>)>,
    prefix: String,
    files: Files,
    whole: String,
    /// The same without the password.
    open: String,
}

/// The files that an address names, each in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    /// The certificates that the server's is signed with.
    pub(super) ca: Option<PathBuf>,
    /// This client's own certificate, with those it is signed with, if the server asks for one.
    pub(super) cert: Option<PathBuf>,
    /// Its key, if that is in another file.
    pub(super) key: Option<PathBuf>,
}

impl Address {
    /// Is `text` meant as an address of etcd?
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("etcd://") || text.starts_with("etcds://")
    }

    /// Takes an address, or says what is wrong with it ([`Code::Usage`](crate::Code::Usage)), never showing it: it may
    /// hold a password.
    pub fn parse(text: &str) -> Result<Address> {
        let (secure, rest) = match (text.strip_prefix("etcd://"), text.strip_prefix("etcds://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(wrong("it begins with neither etcd:// nor etcds://")),
        };
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, prefix) = rest.split_once('/').ok_or_else(|| wrong("it has no prefix"))?;
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user_of(user)?), hosts),
            None => (None, authority),
        };
        let hosts = hosts.split(',').map(host_of).collect::<Result<Vec<String>>>()?;
        let prefix = decoded(prefix.trim_end_matches('/'), "the prefix")?;
        if prefix.split('/').any(str::is_empty) {
            return Err(wrong("its prefix is empty, or has two slashes in a row"));
        }
        if prefix.chars().any(char::is_control) || prefix.len() > 512 {
            return Err(wrong("its prefix has control characters, or more than 512 bytes"));
        }
        let files = query.map(files_of).transpose()?.unwrap_or_default();
        if query.is_some() && !secure {
            return Err(wrong("a CA file, a certificate and its key go with etcds:// only"));
        }
        let open = match authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':')) {
            Some((_, password)) => text.replacen(&format!(":{password}@"), "@", 1),
            None => text.to_owned(),
        };
        Ok(Address { secure, hosts, user, prefix, files, whole: text.to_owned(), open })
    }

    /// With this password, if it names a user and no password.
    pub fn or_password(mut self, password: Option<String>) -> Address {
        if let Some((_, missing @ None)) = &mut self.user {
            *missing = password.filter(|password| !password.is_empty());
        }
        self
    }

    /// Does it hold a password?
    pub fn has_password(&self) -> bool {
        self.user.as_ref().is_some_and(|(_, password)| password.is_some())
    }

    /// The whole of it as it was given, with a password if it has one: for a child's environment and nothing else.
    pub fn reveal(&self) -> &str {
        &self.whole
    }

    /// The whole of it but for the password, which then must come from elsewhere.
    pub fn without_password(&self) -> &str {
        &self.open
    }

    /// Do both name a host in common, and the same prefix, or one of them below the other's?
    pub(crate) fn overlaps(&self, other: &Address) -> bool {
        let is_theirs = |host: &String| other.hosts.iter().any(|theirs| theirs.eq_ignore_ascii_case(host));
        let (one, other) = (format!("{}/", self.prefix), format!("{}/", other.prefix));
        self.hosts.iter().any(is_theirs) && (one.starts_with(&other) || other.starts_with(&one))
    }

    /// The URL of each endpoint, without a path.
    pub(super) fn endpoints(&self) -> Vec<String> {
        let scheme = if self.secure { "https" } else { "http" };
        self.hosts.iter().map(|host| format!("{scheme}://{host}")).collect()
    }

    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Its user and password.
    pub(super) fn user(&self) -> Result<Option<(&str, &str)>> {
        match &self.user {
            None => Ok(None),
            Some((user, Some(password))) => Ok(Some((user, password))),
            Some((_, None)) => Err(wrong("its user has no password").hint("set CLAIM_ETCD_PASSWORD")),
        }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn files(&self) -> &Files {
        &self.files
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "etcds" } else { "etcd" };
        write!(f, "{scheme}://{}/{}", self.hosts.join(","), self.prefix)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

fn wrong(why: &str) -> Error {
    Error::usage(format!("not an address of etcd: {why}"))
        .hint("write it like etcd://HOST:2379,HOST:2379/PREFIX, or etcds:// for HTTPS; its user and password go before the hosts, with an @")
}

fn user_of(text: &str) -> Result<(String, Option<String>)> {
    let (user, given) = text.split_once(':').map_or((text, None), |(user, given)| (user, Some(given)));
    let user = decoded(user, "the user")?;
    if user.is_empty() {
        return Err(wrong("its user is empty"));
    }
    Ok((user, given.map(|given| decoded(given, "the password")).transpose()?))
}

fn host_of(text: &str) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(|| wrong("a bracket is not closed"))?;
            if host.is_empty() || !host.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.') {
                return Err(wrong("what stands in brackets is no IPv6 address"));
            }
            (format!("[{host}]"), rest.strip_prefix(':').or(Some(PORT).filter(|_| rest.is_empty())))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (text.to_owned(), Some(PORT)),
        },
    };
    if host.is_empty() || !(host.starts_with('[') || host.chars().all(is_plain)) {
        return Err(wrong("a host is empty or has characters that no host has"));
    }
    match port.and_then(|port| port.parse::<u16>().ok()) {
        Some(port) if port > 0 => Ok(format!("{host}:{port}")),
        _ => Err(wrong("a port is no number from 1 to 65535")),
    }
}

fn files_of(query: &str) -> Result<Files> {
    let unknown =
        || wrong("after the ? only ca=FILE, cert=FILE and key=FILE are known, each once, with an & between");
    let mut files = Files::default();
    for part in query.split('&') {
        let (file, what) = match part.split_once('=') {
            Some(("ca", file)) => (&mut files.ca, file),
            Some(("cert", file)) => (&mut files.cert, file),
            Some(("key", file)) => (&mut files.key, file),
            _ => return Err(unknown()),
        };
        if what.is_empty() || file.replace(decoded(what, "a file's name")?.into()).is_some() {
            return Err(unknown());
        }
    }
    match (&files.cert, &files.key) {
        (None, Some(_)) => Err(wrong("it names a key and no certificate, cert=FILE")),
        _ => Ok(files),
    }
}

fn decoded(text: &str, what: &str) -> Result<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(|text| text.into_owned()).map_err(|_| wrong(&format!("{what} is not valid UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Address, String> {
        Address::parse(text).map_err(|e| e.to_string())
    }

    #[test]
    fn takes_hosts_users_and_prefixes() {
        let address = parsed("etcds://al%40ice:p%3Aw@a:1,b,[::1]:3/team/x/?ca=/etc/ca.pem").unwrap();
        assert_eq!(address.endpoints(), ["https://a:1", "https://b:2379", "https://[::1]:3"]);
        assert_eq!(address.user().unwrap(), Some(("al@ice", "p:w")));
        let ca = Files { ca: Some("/etc/ca.pem".into()), ..Files::default() };
        assert_eq!((address.prefix(), address.files()), ("team/x", &ca));
        assert_eq!(address.to_string(), "etcds://a:1,b:2379,[::1]:3/team/x");
        let files = Files { ca: None, cert: Some("a&b".into()), key: Some("/k=".into()) };
        assert_eq!(parsed("etcds://a/x?key=/k=&cert=a%26b").unwrap().files(), &files);
        let named = parsed("etcd://alice@a/x").unwrap();
        assert!(named.user().is_err() && !named.has_password());
        assert_eq!(named.or_password(Some("secret".into())).user().unwrap(), Some(("alice", "secret")));
    }

    #[test]
    fn knows_one_that_is_the_same_or_below() {
        let overlap = |one: &str, other: &str| {
            let (one, other) = (Address::parse(one).unwrap(), Address::parse(other).unwrap());
            assert_eq!(one.overlaps(&other), other.overlaps(&one));
            one.overlaps(&other)
        };
        for other in ["etcd://b,A:2379/team/x/", "etcds://u:p@a/team/x", "etcd://a/team", "etcd://a/team/x/y"]
        {
            assert!(overlap("etcd://a:2379,c/team/x", other), "{other}");
        }
        for other in ["etcd://b/team/x", "etcd://a:1/team/x", "etcd://a/team/xy", "etcd://a/te", "etcd://a/x"]
        {
            assert!(!overlap("etcd://a:2379,c/team/x", other), "{other}");
        }
    }

    #[test]
    fn never_shows_a_password() {
        let address = parsed("etcd://alice:sesame@a/x").unwrap();
        assert!(!format!("{address} {address:?} {}", address.without_password()).contains("sesame"));
        assert_eq!(address.without_password(), "etcd://alice@a/x");
        for wrong in ["etcd://alice:sesame@a", "etcd://alice:sesame@a:b/x", "etcd://alice:ses%ffame@a/x"] {
            let error = parsed(wrong).unwrap_err();
            assert!(!error.contains("sesame") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn refuses_what_is_none() {
        for wrong in [
            "etcd://",
            "etcd:///x",
            "etcd://a",
            "etcd://a/",
            "etcd://a//x",
            "etcd://a/x//y",
            "etcd://a,/x",
            "etcd://a:0/x",
            "etcd://a:70000/x",
            "etcd://a:/x",
            "etcd://a b/x",
            "etcd://[::1/x",
            "etcd://[x]/x",
            "etcd://[::1]2/x",
            "etcd://@a/x",
            "etcd://:p@a/x",
            "etcd://a/x?ca=/f",
            "etcds://a/x?cb=/f",
            "etcds://a/x?ca=",
            "etcds://a/x?",
            "etcds://a/x?ca=/f&ca=/g",
            "etcds://a/x?ca=/f&",
            "etcds://a/x?key=/f",
            "etcd://a/x?cert=/f&key=/g",
            "etcd://a/x%00",
            "http://a/x",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
