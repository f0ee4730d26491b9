//! What stands before a server: it counts what is asked for, and loses answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// What happens between the change and its lost answer.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// Stands before a server, and loses the answer to a change of a node's record when it is told to.
pub struct Proxy {
    pub port: u16,
    lose: Arc<Mutex<Option<Meanwhile>>>,
    pub lost: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub fn before(server: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (lose, lost) = (Arc::<Mutex<Option<Meanwhile>>>::default(), Arc::<AtomicUsize>::default());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (loses, losses, asks) = (lose.clone(), lost.clone(), asked.clone());
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (loses, losses, asks) = (loses.clone(), losses.clone(), asks.clone());
                thread::spawn(move || pass_on(connection.unwrap(), server, &asks, &loses, &losses));
            }
        });
        Proxy { port, lose, lost, asked }
    }

    /// What was asked for since the last call: the path of each request.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    pub fn lose_one(&self, meanwhile: impl FnOnce() + Send + 'static) {
        *self.lose.lock().unwrap() = Some(Box::new(meanwhile));
    }
}

fn pass_on(
    connection: TcpStream,
    server: u16,
    asked: &Mutex<Vec<String>>,
    lose: &Mutex<Option<Meanwhile>>,
    lost: &AtomicUsize,
) {
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
        asked.lock().unwrap().push(path.clone());
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
