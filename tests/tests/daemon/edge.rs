//! Where these tests play: the host at the edge with a UDP service, the world outside, a link between
//! them, and a home for the daemons that are started at the edge.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use limiter_tests::frame::Frame;
use limiter_tests::net::{
    Attached, End, FrameSocket, Namespace, UdpSink, attached, veth_with_queues,
};
use limiter_tests::process::{Daemon, Home, Invocation, Said, at_home, binary, run};
use serde_json::Value;

/// The service behind the limiter.
pub(crate) const HOST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
pub(crate) const PORT: u16 = 7001;
/// Inside the edge's namespace, where no other program can have taken the port.
pub(crate) const METRICS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9184);
/// Two strangers in different prefixes.
pub(crate) const ANNA: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 66);
pub(crate) const BOB: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
/// For what other processes do in their own time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The edge's MAC address, so that nobody asks for it and every packet on the link is a test's.
pub(crate) const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// The kernel hands a packet on within microseconds of its sending.
const QUIET: Duration = Duration::from_millis(100);

/// Fields are dropped in this order.
pub(crate) struct Edge {
    pub(crate) home: Home,
    pub(crate) sink: UdpSink,
    pub(crate) outside: Namespace,
    pub(crate) inside: Namespace,
}

impl Edge {
    /// Two namespaces and a link; nothing is limited yet.
    pub(crate) fn new() -> Self {
        Self::with_queues(1)
    }

    pub(crate) fn with_queues(queues: u32) -> Self {
        let inside = Namespace::create("edge").unwrap();
        let outside = Namespace::create("edge").unwrap();
        // Whole networks as local addresses: a sender binds to any of them.
        outside
            .ip(&[
                "route add local 198.51.100.0/24 dev lo",
                "route add local 203.0.113.0/24 dev lo",
            ])
            .unwrap();
        link(&inside, &outside, 0, queues);
        let sink = UdpSink::bind(&inside, (HOST, PORT).into()).unwrap();
        Self { home: Home::create("edge").unwrap(), sink, outside, inside }
    }

    /// Joins `edgeN` inside to `outN` outside, once more or anew.
    pub(crate) fn link(&self, number: u8) {
        link(&self.inside, &self.outside, number, 1);
    }

    /// What `limiter run` is to be told.
    pub(crate) fn invocation(&self) -> Invocation {
        Invocation {
            binary: binary().unwrap(),
            interfaces: vec!["edge0".into()],
            policy: self.policy_path(),
            metrics: Some(METRICS),
            // The table of these tests is small: sixteen of them fit into one of the usual size.
            extra: vec!["--table-buckets".into(), "8192".into()],
        }
    }

    pub(crate) fn policy_path(&self) -> PathBuf {
        self.home.socket().with_file_name("policy.toml")
    }

    /// Writes the policy file and starts a daemon.
    pub(crate) fn start(&self, policy: &str) -> Daemon {
        self.home.write("policy.toml", policy).unwrap();
        self.restart()
    }

    /// Starts a daemon with the policy file as it is.
    pub(crate) fn restart(&self) -> Daemon {
        Daemon::start(&self.inside, &self.home, &self.invocation()).unwrap()
    }

    /// Offers packets of one source and counts those that the service got.
    pub(crate) fn admitted(&self, source: Ipv4Addr, offered: u32) -> u64 {
        self.send(source, offered);
        self.received().get(&IpAddr::V4(source)).copied().unwrap_or(0)
    }

    pub(crate) fn send(&self, source: Ipv4Addr, count: u32) {
        let socket = self.outside.run(|| UdpSocket::bind((source, 0))).unwrap().unwrap();
        for _ in 0..count {
            socket.send_to(b"hello", (HOST, PORT)).unwrap();
        }
    }

    /// All that came since the last look, by source.
    pub(crate) fn received(&self) -> BTreeMap<IpAddr, u64> {
        self.sink.collect(QUIET).unwrap()
    }

    /// To send frames of any source on `outN`.
    pub(crate) fn frames(&self, number: u8) -> FrameSocket {
        FrameSocket::open(&self.outside, &format!("out{number}")).unwrap()
    }

    /// What the kernel says about the interface.
    pub(crate) fn xdp(&self, interface: &str) -> Option<Attached> {
        attached(&self.inside, interface).unwrap()
    }

    /// `limiter …`, to its end.
    pub(crate) fn limiter(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(binary().unwrap());
        self.run(command.args(arguments))
    }

    /// Any command, as a user of this home runs it who wants to see backtraces.
    pub(crate) fn run(&self, command: &mut Command) -> Said {
        at_home(command, &self.home).env("RUST_BACKTRACE", "1");
        run(&self.inside, command).unwrap()
    }

    /// The answer of a verb that succeeds.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let said = self.limiter(&[arguments, &["--json"]].concat());
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{arguments:?}: {said:?}");
        serde_json::from_str(&said.stdout).expect(&said.stdout)
    }

    /// The text of a verb that succeeds.
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        let said = self.limiter(arguments);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{arguments:?}: {said:?}");
        said.stdout
    }

    /// The one message of a verb that fails.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        one_message(&self.limiter(arguments))
    }

    pub(crate) fn status(&self) -> Value {
        self.json(&["status"])
    }

    /// Of the first rule: passed, refused, would refuse.
    pub(crate) fn counts(&self) -> [u64; 3] {
        let status = self.status();
        let rule = &status["policy"]["rules"][0];
        ["passed", "refused", "would_refuse"].map(|count| rule[count].as_u64().unwrap())
    }
}

/// A whole failure: exit code 1, and nothing but one message, which is no dump of anything.
pub(crate) fn one_message(said: &Said) -> String {
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    let message = said.stderr.strip_prefix("limiter: ").expect(&said.stderr).to_owned();
    for dump in
        ["limiter: ", "panicked", "backtrace", "internal error", "Some(", "Error {", " WARN "]
    {
        assert!(!message.contains(dump), "{dump}: {message}");
    }
    message
}

/// A UDP frame from anyone to the service.
pub(crate) fn frame(source: Ipv4Addr) -> Vec<u8> {
    let frame = Frame::new().ethernet(MAC, [2, 0, 0, 0, 0, 9]);
    frame.ipv4(source).destination(HOST).udp(PORT).build()
}

/// One rule for all UDP, with a limit per source.
pub(crate) fn policy(source: u32, window: &str) -> String {
    policy_with(&format!("source = {source}"), window)
}

/// The same with any limits.
pub(crate) fn policy_with(limits: &str, window: &str) -> String {
    format!(
        "schema = 1\n[[rule]]\nname = \"udp\"\nmatch = [{{ protocol = \"udp\" }}]\nlimit = {{ {limits} }}\n\
         window = \"{window}\"\n"
    )
}

/// The policy under a version.
pub(crate) fn versioned(version: u64, policy: &str) -> String {
    policy.replacen("schema = 1", &format!("schema = 1\nversion = {version}"), 1)
}

/// A window with its end far away, so that no test meets one that it doesn't want.
pub(crate) fn calm() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let lengths = (1_800..=3_600).step_by(60);
    let length = lengths.max_by_key(|length| length - now % length).unwrap();
    assert!(length - now % length > 600);
    format!("{length}s")
}

fn link(inside: &Namespace, outside: &Namespace, number: u8, queues: u32) {
    let (edge, out) = (format!("edge{number}"), format!("out{number}"));
    let address = |host: u8| format!("198.18.{number}.{host}/30");
    veth_with_queues(
        End { namespace: inside, interface: &edge, addresses: &[&address(1)] },
        End { namespace: outside, interface: &out, addresses: &[&address(2)] },
        queues,
    )
    .unwrap();
    let mac = MAC.map(|byte| format!("{byte:02x}")).join(":");
    inside.ip(&[&format!("link set dev {edge} address {mac}")]).unwrap();
    outside
        .ip(&[&format!("neigh replace 198.18.{number}.1 lladdr {mac} dev {out} nud permanent")])
        .unwrap();
    // Without a way back the stack takes the senders for spoofed.
    inside.ip(&[&format!("route add default via 198.18.{number}.2 metric {number}")]).unwrap();
}
