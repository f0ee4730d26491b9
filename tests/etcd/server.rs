//! Real etcd servers on loopback, which end with the test.

#![allow(dead_code, reason = "each program uses its part")]
#![allow(unreachable_pub, reason = "one module for several programs")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use claimdir::Directory;
use claimdir::store::etcd::{Address, Options};
use tempfile::TempDir;

/// Some servers that know each other.
pub struct Cluster {
    pub nodes: Vec<Node>,
    folder: TempDir,
    /// Does it speak HTTPS to clients?
    secure: bool,
    /// Does it ask them for certificates?
    asks: bool,
    /// Does it wait for the disk?
    synced: bool,
    /// What it is told beside the rest.
    arguments: Vec<String>,
}

/// One of them.
pub struct Node {
    pub port: u16,
    peer: u16,
    running: Option<Running>,
}

/// A server and the shell that holds it: it kills the server once nobody holds its standard input.
struct Running {
    shell: Child,
    pid: String,
}

impl Cluster {
    /// So many servers, once they answer.
    pub fn start(count: usize) -> Cluster {
        let mut cluster = Cluster::prepare(count, false);
        (0..count).for_each(|at| cluster.begin(at));
        cluster.wait();
        cluster
    }

    /// One that speaks HTTPS.
    pub fn start_secure() -> Cluster {
        let mut cluster = Cluster::prepare(1, true);
        cluster.begin(0);
        cluster.wait();
        cluster
    }

    /// One that asks its clients for certificates.
    pub fn start_asking() -> Cluster {
        let mut cluster = Cluster { asks: true, ..Cluster::prepare(1, true) };
        cluster.begin(0);
        cluster.wait();
        cluster
    }

    /// One with these arguments, too.
    pub fn start_with(arguments: &[&str]) -> Cluster {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let mut cluster = Cluster { arguments, ..Cluster::prepare(1, false) };
        cluster.begin(0);
        cluster.wait();
        cluster
    }

    /// One that waits for the disk, for benchmarks: what a power cut takes is not tested, and a slow disk would make
    /// all tests slow.
    pub fn start_synced() -> Cluster {
        let mut cluster = Cluster { synced: true, ..Cluster::prepare(1, false) };
        cluster.begin(0);
        cluster.wait();
        cluster
    }

    fn prepare(count: usize, secure: bool) -> Cluster {
        let ports = free_ports(2 * count);
        let node = |pair: &[u16]| Node { port: pair[0], peer: pair[1], running: None };
        Cluster {
            nodes: ports.chunks(2).map(node).collect(),
            folder: tempfile::tempdir().unwrap(),
            secure,
            asks: false,
            synced: false,
            arguments: Vec::new(),
        }
    }

    /// The certificate that the one of a server is signed with, which speaks HTTPS.
    pub fn ca() -> PathBuf {
        tls("ca.pem")
    }

    /// Starts the server, also one that was stopped, with what it knew.
    pub fn begin(&mut self, at: usize) {
        let all: Vec<String> =
            self.nodes.iter().map(|node| format!("n{0}=http://127.0.0.1:{0}", node.peer)).collect();
        let node = &self.nodes[at];
        let scheme = if self.secure { "https" } else { "http" };
        let folder = self.folder.path().join(node.port.to_string());
        let log = fs::File::options().create(true).append(true).open(folder.with_extension("log")).unwrap();
        let (client, peer) =
            (format!("{scheme}://127.0.0.1:{}", node.port), format!("http://127.0.0.1:{}", node.peer));
        let mut command = Command::new("sh");
        command.args(["-c", r#""$@" & echo $!; read -r _; kill -9 $!"#, "sh"]);
        command.arg(etcd_bin_vendored::etcd_bin_path().unwrap()).args(["--name", &format!("n{}", node.peer)]);
        command.arg("--data-dir").arg(&folder).args(["--initial-cluster", &all.join(",")]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--log-level", "warn"]).args(&self.arguments);
        if !self.synced {
            command.arg("--unsafe-no-fsync");
        }
        if self.secure {
            command.arg("--cert-file").arg(tls("server.pem")).arg("--key-file").arg(tls("server.key"));
        }
        if self.asks {
            command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(tls("client-ca.pem"));
            // Its gateway is a client of its own.
            command.arg("--client-cert-file").arg(tls("client.pem"));
            command.arg("--client-key-file").arg(tls("client.key"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut shell = command.spawn().unwrap();
        let mut pid = String::new();
        BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut pid).unwrap();
        self.nodes[at].running = Some(Running { shell, pid: pid.trim().to_owned() });
    }

    /// Waits until a write goes through.
    pub fn wait(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while let Err(error) = self.directory("cluster/ready").create() {
            assert!(Instant::now() < end, "{error}: {}", self.log());
        }
    }

    /// The address of the directory with this prefix, with all servers.
    pub fn url(&self, prefix: &str) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        let hosts = hosts.join(",");
        let ca = Cluster::ca();
        match (self.secure, self.asks) {
            (false, _) => format!("etcd://{hosts}/{prefix}"),
            (true, false) => format!("etcds://{hosts}/{prefix}?ca={}", ca.display()),
            (true, true) => {
                let [cert, key] = ["client.pem", "client.key"].map(tls);
                format!(
                    "etcds://{hosts}/{prefix}?ca={}&cert={}&key={}",
                    ca.display(),
                    cert.display(),
                    key.display()
                )
            }
        }
    }

    pub fn directory(&self, prefix: &str) -> Directory {
        Directory::open_etcd(&Address::parse(&self.url(prefix)).unwrap(), Options::default()).unwrap()
    }

    /// What befalls one of the servers: the leader is killed and comes back, or another is frozen for a while.
    pub fn trouble(&mut self, turn: usize) {
        let pause = |ms| std::thread::sleep(Duration::from_millis(ms));
        pause(1_500);
        let leader = self.leader();
        if turn.is_multiple_of(2) {
            self.nodes[leader].kill();
            pause(2_000);
            self.begin(leader);
        } else {
            let other = (leader + turn) % self.nodes.len();
            self.nodes[other].signal("-STOP");
            pause(2_500);
            self.nodes[other].signal("-CONT");
        }
    }

    /// Which server leads.
    pub fn leader(&self) -> usize {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            for (at, node) in self.nodes.iter().enumerate() {
                let status = node.ask("/v3/maintenance/status", "{}");
                if !status["leader"].is_null() && status["leader"] == status["header"]["member_id"] {
                    return at;
                }
            }
            assert!(Instant::now() < end, "nobody leads: {}", self.log());
        }
    }

    fn log(&self) -> String {
        let entries = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let logs = entries.filter(|path| path.extension().is_some_and(|end| end == "log"));
        logs.map(|path| fs::read_to_string(path).unwrap()).collect()
    }
}

impl Node {
    /// What the server says to `body` at `path`; null if it says nothing.
    pub fn ask(&self, path: &str, body: &str) -> serde_json::Value {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let request = ureq::post(url).config().timeout_global(Some(Duration::from_secs(5))).build();
        let Ok(mut answer) = request.send(body) else { return serde_json::Value::Null };
        serde_json::from_slice(&answer.body_mut().read_to_vec().unwrap_or_default()).unwrap_or_default()
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// SIGSTOP or SIGCONT.
    pub fn signal(&self, signal: &str) {
        let pid = &self.running.as_ref().unwrap().pid;
        assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-9", &self.pid]).stderr(Stdio::null()).status();
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// A certificate or a key, for tests alone.
pub fn tls(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/etcd/tls").join(name)
}

fn free_ports(count: usize) -> Vec<u16> {
    let bound: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    bound.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}
