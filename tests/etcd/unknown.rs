//! Answers that are lost: what was asked for was done, and the one who asked does not know.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::Remote;
use crate::server::Cluster;

/// What happens between the change and its lost answer.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// Stands before a server, and loses the answer to a change of a node's record when it is told to.
struct Proxy {
    port: u16,
    lose: Arc<Mutex<Option<Meanwhile>>>,
    lost: Arc<AtomicUsize>,
}

impl Proxy {
    fn before(server: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (lose, lost) = (Arc::<Mutex<Option<Meanwhile>>>::default(), Arc::<AtomicUsize>::default());
        let (loses, losses) = (lose.clone(), lost.clone());
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (loses, losses) = (loses.clone(), losses.clone());
                thread::spawn(move || pass_on(connection.unwrap(), server, &loses, &losses));
            }
        });
        Proxy { port, lose, lost }
    }

    fn lose_one(&self, meanwhile: impl FnOnce() + Send + 'static) {
        *self.lose.lock().unwrap() = Some(Box::new(meanwhile));
    }
}

fn pass_on(connection: TcpStream, server: u16, lose: &Mutex<Option<Meanwhile>>, lost: &AtomicUsize) {
    let mut from = BufReader::new(connection.try_clone().unwrap());
    let mut to = connection;
    loop {
        let (mut path, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if from.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if path.is_empty() {
                path = line.split(' ').nth(1).unwrap().to_owned();
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).unwrap();
        let url = format!("http://127.0.0.1:{server}{path}");
        let request = ureq::post(url).config().http_status_as_error(false).build();
        let mut answer = request.send(&body[..]).unwrap();
        let says = answer.body_mut().read_to_vec().unwrap();
        if path == "/v3/kv/txn"
            && changes_a_record(&body)
            && let Some(meanwhile) = lose.lock().unwrap().take()
        {
            meanwhile();
            lost.fetch_add(1, Ordering::SeqCst);
            return; // the connection closes
        }
        let head =
            format!("HTTP/1.1 {} X\r\nContent-Length: {}\r\n\r\n", answer.status().as_u16(), says.len());
        to.write_all(head.as_bytes()).unwrap();
        to.write_all(&says).unwrap();
    }
}

/// Does it put something at a node's key, and only if something else holds?
fn changes_a_record(body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap();
    let key = &body["success"][0]["request_put"]["key"];
    // unknown//n/ in base64, as far as it does not depend on what follows
    key.as_str().is_some_and(|key| key.starts_with("dW5rbm93bi8vbi"))
}

#[test]
fn who_asked_is_told_what_was_done() {
    let cluster = Cluster::start(1);
    let proxy = Proxy::before(cluster.nodes[0].port);
    let direct = Remote::on(&cluster, "unknown");
    let remote = Remote::at(format!("etcd://127.0.0.1:{}/unknown", proxy.port));
    let losing = |line: &str, meanwhile: &str| {
        let (before, mut other) = (proxy.lost.load(Ordering::SeqCst), direct.claim());
        other.args(meanwhile.split_whitespace());
        let act = meanwhile.to_owned();
        proxy.lose_one(move || assert!(act.is_empty() || other.output().unwrap().status.success()));
        let said = remote.json(line);
        assert_eq!(proxy.lost.load(Ordering::SeqCst), before + 1, "{line}: no answer was lost");
        said
    };
    // A record that was not there, and one that was.
    let mut token = String::new();
    for generation in 1..=2 {
        let taken: Value = losing("acquire x --owner alice", "").expect(0);
        assert_eq!((&taken["generation"], &taken["owner"]), (&generation.into(), &"alice".into()));
        token = taken["token"].as_str().unwrap().to_owned();
        let renewed: Value = losing(&format!("renew x --token {token}"), "").expect(0);
        assert_eq!(renewed["version"], 3 * generation - 1);
        if generation == 1 {
            let freed: Value = losing(&format!("release x --token {token}"), "").expect(0);
            assert_eq!(freed["replay"], false);
        }
    }
    // Somebody has written since: what there is now comes from this claim.
    let noted: Value = losing("acquire y --owner alice", "note y seen").expect(0);
    let free = format!("release y --token {}", noted["token"].as_str().unwrap());
    assert_eq!(direct.say(&free).exit, 0);
    let again: Value = losing("acquire y --owner alice", "note y seen-again").expect(0);
    assert_eq!(again["generation"], 2);
    // And where it does not tell, that is said.
    let done = format!("complete x --token {token} --result 1");
    let unclear = losing(&format!("renew x --token {token}"), &done);
    let refused: crate::Refused = unclear.expect(6);
    assert!(refused.hint.is_some_and(|hint| hint.contains("it may stand")), "{:?}", refused.message);
    let sent: Value = remote.json("mail send box 1").expect(0);
    assert_eq!(sent["number"], 1);
}
