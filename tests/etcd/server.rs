//! Real etcd servers on loopback, which end with the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use claimdir::Directory;
use claimdir::store::etcd::{Address, Options};
use tempfile::TempDir;

/// Some servers that know each other.
pub struct Cluster {
    pub nodes: Vec<Node>,
    folder: TempDir,
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
        let ports = free_ports(2 * count);
        let nodes =
            ports.chunks(2).map(|pair| Node { port: pair[0], peer: pair[1], running: None }).collect();
        let mut cluster = Cluster { nodes, folder: tempfile::tempdir().unwrap() };
        (0..count).for_each(|at| cluster.begin(at));
        cluster.wait();
        cluster
    }

    /// Starts the server, also one that was stopped, with what it knew.
    pub fn begin(&mut self, at: usize) {
        let all: Vec<String> =
            self.nodes.iter().map(|node| format!("n{0}=http://127.0.0.1:{0}", node.peer)).collect();
        let node = &self.nodes[at];
        let folder = self.folder.path().join(node.port.to_string());
        let log = fs::File::options().create(true).append(true).open(folder.with_extension("log")).unwrap();
        let (client, peer) =
            (format!("http://127.0.0.1:{}", node.port), format!("http://127.0.0.1:{}", node.peer));
        let mut command = Command::new("sh");
        command.args(["-c", r#""$@" & echo $!; read -r _; kill -9 $!"#, "sh"]);
        command.arg(etcd_bin_vendored::etcd_bin_path().unwrap()).args(["--name", &format!("n{}", node.peer)]);
        command.arg("--data-dir").arg(&folder).args(["--initial-cluster", &all.join(",")]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        // What a power cut takes is not tested here, and a slow disk would make everything slow.
        command.args(["--unsafe-no-fsync", "--log-level", "warn"]);
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
        format!("etcd://{}/{prefix}", hosts.join(","))
    }

    pub fn directory(&self, prefix: &str) -> Directory {
        Directory::open_etcd(&Address::parse(&self.url(prefix)).unwrap(), Options::default()).unwrap()
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

fn free_ports(count: usize) -> Vec<u16> {
    let bound: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    bound.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}
