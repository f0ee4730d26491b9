//! Certificates: whom to trust, and who we are to a server that asks.

use std::path::Path;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use super::Address;
use crate::error::{Error, Result};

/// How to speak HTTPS with the servers of `address`.
pub(super) fn config(address: &Address) -> Result<TlsConfig> {
    let files = address.files();
    let mut config = TlsConfig::builder();
    if let Some(file) = &files.ca {
        let what = "CA file";
        config = config.root_certs(RootCerts::from(certificates(&items(file, what)?, file, what)?));
    }
    if let Some(file) = &files.cert {
        config = config.client_cert(Some(client(file, files.key.as_deref().unwrap_or(file))?));
    }
    Ok(config.build())
}

/// The certificate in one file and the key in the other, which may be the same.
fn client(cert: &Path, key: &Path) -> Result<ClientCert> {
    let what = "client certificate";
    let chain = certificates(&items(cert, what)?, cert, what)?;
    let found = items(key, "client certificate's key")?.into_iter().find_map(|item| match item {
        PemItem::PrivateKey(key) => Some(key),
        _ => None,
    });
    let found = found.ok_or_else(|| {
        let message = format!("the client certificate's key file {} holds no private key", key.display());
        Error::usage(message).hint("name one in PEM that no password protects: &key=FILE")
    })?;
    matches(&chain, &found).map_err(|why| {
        let (cert, key) = (cert.display(), key.display());
        Error::usage(format!("the client certificate {cert} and the key {key} don't go together: {why}"))
    })?;
    Ok(ClientCert::new_with_certs(&chain, found))
}

/// The HTTP client takes it for granted that they do.
fn matches(chain: &[Certificate<'static>], key: &PrivateKey<'static>) -> Result<(), String> {
    let chain = chain.iter().map(|one| CertificateDer::from(one.der().to_vec())).collect();
    let key = PrivateKeyDer::try_from(key.der().to_vec())?;
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, key, &provider).map(drop).map_err(|error| error.to_string())
}

fn items(file: &Path, what: &str) -> Result<Vec<PemItem<'static>>> {
    let bytes = std::fs::read(file)
        .map_err(|error| Error::usage(format!("the {what} {} can't be read: {error}", file.display())))?;
    Ok(parse_pem(&bytes).filter_map(std::result::Result::ok).collect())
}

fn certificates(items: &[PemItem<'static>], file: &Path, what: &str) -> Result<Vec<Certificate<'static>>> {
    let certificate = |item: &PemItem<'static>| match item {
        PemItem::Certificate(certificate) => Some(certificate.clone()),
        _ => None,
    };
    let found: Vec<Certificate<'static>> = items.iter().filter_map(certificate).collect();
    match found.is_empty() {
        true => Err(Error::usage(format!("the {what} {} holds no certificate in PEM", file.display()))),
        false => Ok(found),
    }
}

/// What to do about a connection that was refused for its certificates.
pub(super) fn hint(error: &ureq::Error) -> &'static str {
    // The server says so, or we do of its own.
    match error.to_string().contains("received fatal alert") {
        true => "the server asks for a client certificate that it trusts: ?cert=FILE&key=FILE in the address",
        false => {
            "is the server's certificate signed by the CA that the address names (?ca=FILE), or by a public one?"
        }
    }
}
