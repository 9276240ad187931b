//! What can't be done is said once, with the way out, and leaves everything as it was.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use limiter_tests::net::Mode;
use limiter_tests::owner::unique_name;
use limiter_tests::process::{Home, at_home, binary, run};
use limiter_tests::require;

use super::edge::{ANNA, BOB, Edge, METRICS, calm, one_message, policy};
use super::ready;

/// The user `nobody` on every Linux.
const NOBODY: u32 = 65_534;

/// `limiter run` on these interfaces, with this home's folders.
fn start(command: &mut Command, home: &Home, policy: &Path, interfaces: &[&str]) {
    command.arg("run").arg("--policy").arg(policy).arg("--state-dir").arg(home.state());
    command.args(["--table-buckets", "8192"]);
    for interface in interfaces {
        command.args(["--iface", interface]);
    }
}

/// The one message of a start that fails and leaves nothing.
fn refused(edge: &Edge, interfaces: &[&str], more: &[&str]) -> String {
    let mut command = Command::new(binary().unwrap());
    start(&mut command, &edge.home, &edge.policy_path(), interfaces);
    let message = one_message(&edge.run(command.args(more)));
    nothing_left(edge, &edge.home);
    message
}

fn nothing_left(edge: &Edge, home: &Home) {
    for interface in ["edge0", "lo"] {
        assert_eq!(edge.xdp(interface), None, "{interface}");
    }
    assert_no_pins(home);
    assert!(!home.socket().exists());
}

/// Names with a dot aren't pins: the kernel puts them into each BPF file system.
fn assert_no_pins(home: &Home) {
    let names = fs::read_dir(home.pins()).unwrap().map(|pin| pin.unwrap().file_name());
    let pins: Vec<_> = names.filter(|name| !name.to_string_lossy().contains('.')).collect();
    assert_eq!(pins, [""; 0]);
}

fn unlimited() -> Edge {
    let edge = Edge::new();
    edge.home.write("policy.toml", &policy(20, &calm())).unwrap();
    edge
}

#[test]
fn an_interface_that_is_not_there() {
    require!(ready());
    let message = refused(&unlimited(), &["wan0"], &["--metrics", "off"]);
    assert_eq!(message, "no interface wan0 here; choose one of: lo, edge0\n");
}

#[test]
fn a_second_interface_that_cannot_be_had_frees_the_first() {
    require!(ready());
    let edge = unlimited();
    let message = refused(&edge, &["edge0", "lo"], &["--metrics", "off"]);
    assert!(message.starts_with("lo: its driver has no native XDP; `--generic`"), "{message}");
    assert_eq!(edge.admitted(ANNA, 30), 30, "nothing is limited");
}

#[test]
fn an_interface_without_native_xdp_is_never_taken_the_slow_way_unasked() {
    require!(ready());
    let edge = unlimited();
    let message = refused(&edge, &["lo"], &["--metrics", "off"]);
    assert!(message.starts_with("lo: its driver has no native XDP; `--generic`"), "{message}");
    assert_eq!(message.lines().count(), 1);
    let mut invocation = edge.invocation();
    invocation.interfaces = vec!["lo".into()];
    invocation.extra.push("--generic".into());
    let asked =
        limiter_tests::process::Daemon::start(&edge.inside, &edge.home, &invocation).unwrap();
    assert_eq!(edge.xdp("lo").map(|attached| attached.mode), Some(Mode::Generic));
    drop(asked);
}

#[test]
fn a_metrics_port_that_is_taken() {
    require!(ready());
    let edge = unlimited();
    let _taken = edge.inside.run(|| TcpListener::bind(METRICS)).unwrap().unwrap();
    let message = refused(&edge, &["edge0"], &["--metrics", &METRICS.to_string()]);
    let expected = "metrics address 127.0.0.1:9184: another program listens there; choose another with \
                    --metrics ADDRESS:PORT, or --metrics off\n";
    assert_eq!(message, expected);
}

#[test]
fn a_policy_with_three_mistakes_names_all_three_lines() {
    require!(ready());
    let edge = unlimited();
    let text = "schema = 1\n[[rule]]\nname = \"udp\"\nmatch = [{ protocol = \"upd\" }]\n\
                limit = { source = -3 }\nwindow = \"150ms\"\n";
    edge.home.write("policy.toml", text).unwrap();
    let message = refused(&edge, &["edge0"], &["--metrics", "off"]);
    let lines: Vec<&str> = message.lines().collect();
    let path = edge.policy_path();
    assert_eq!(lines[0], format!("{}: the policy is refused:", path.display()));
    let starts = [
        "line 4: rule \"udp\": match",
        "line 5: rule \"udp\": limit",
        "line 6: rule \"udp\": window",
    ];
    assert_eq!(lines.len(), 4, "{message}");
    for (line, start) in lines[1..].iter().zip(starts) {
        assert!(line.starts_with(start) && line.contains("; "), "{message}");
    }
}

#[test]
fn a_start_that_is_refused_leaves_guarded_what_was() {
    require!(ready());
    let edge = Edge::new();
    edge.start(&policy(20, &calm())).kill();
    assert_eq!(edge.admitted(ANNA, 8), 8);
    let _taken = edge.inside.run(|| TcpListener::bind(METRICS)).unwrap().unwrap();
    let (port, off) = (METRICS.to_string(), "off".to_owned());
    for (interfaces, metrics) in [
        (&["edge0"][..], &port),
        (&["edge0", "lo"], &off),
        (&["lo", "edge0"], &off),
        (&["edge0", "wan0"], &off),
    ] {
        let mut command = Command::new(binary().unwrap());
        start(&mut command, &edge.home, &edge.policy_path(), interfaces);
        one_message(&edge.run(command.args(["--metrics", metrics])));
        assert_eq!(edge.xdp("edge0").map(|attached| attached.mode), Some(Mode::Native));
        assert_eq!(edge.xdp("lo"), None);
    }
    assert_eq!(edge.admitted(ANNA, 30), 12, "with limit and count");
}

#[test]
fn a_start_that_is_refused_leaves_the_policy_in_force_and_on_disk() {
    require!(ready());
    let (edge, window) = (Edge::new(), calm());
    edge.start(&policy(20, &window)).kill();
    assert_eq!(edge.admitted(ANNA, 8), 8);
    let record = || fs::read_to_string(edge.home.state().join("policy.json")).unwrap();
    let before = record();
    edge.home.write("policy.toml", &policy(1_000, &window)).unwrap();
    for interfaces in [["edge0", "lo"], ["lo", "edge0"]] {
        let mut command = Command::new(binary().unwrap());
        start(&mut command, &edge.home, &edge.policy_path(), &interfaces);
        let message = one_message(&edge.run(command.args(["--metrics", "off"])));
        assert!(message.starts_with("lo: its driver has no native XDP"), "{message}");
        assert_eq!(edge.xdp("lo"), None);
    }
    assert_eq!(record(), before);
    assert_eq!(edge.admitted(ANNA, 30), 12, "the old limit, and its count");
    let _daemon = edge.restart();
    assert_eq!(edge.status()["policy"]["version"], 2);
    assert_eq!(edge.admitted(ANNA, 30), 30, "the new one, once it starts");
}

#[test]
fn where_no_daemon_ever_ran_the_verbs_without_one_say_so() {
    require!(ready());
    let edge = Edge::new();
    for (verb, reason) in [
        (&["bypass", "pass"][..], "nothing to bypass"),
        (&["bypass"], "nothing to bypass"),
        (&["detach", "edge0"], "not guarded by limiter"),
        (&["attach", "edge0"], "start the daemon once"),
        (&["status"], "no daemon answers"),
    ] {
        let message = edge.refused(verb);
        assert!(message.contains(reason) && message.lines().count() == 1, "{verb:?}: {message}");
    }
    nothing_left(&edge, &edge.home);
}

#[test]
fn without_privileges_it_says_which_are_missing() {
    require!(ready());
    let edge = unlimited();
    let program = Everyones::copy();
    let mut command = Command::new(&program.0);
    start(&mut command, &edge.home, &edge.policy_path(), &["edge0"]);
    command.args(["--metrics", "off"]).uid(NOBODY).gid(NOBODY);
    let message = one_message(&edge.run(&mut command));
    let expected = "not allowed: CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON missing; run as root, or with the \
                    capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON\n";
    assert_eq!(message, expected);
    nothing_left(&edge, &edge.home);
}

#[test]
fn without_privileges_a_running_daemon_is_out_of_reach() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = edge.start(&policy(20, &calm()));
    let program = Everyones::copy();
    for verb in [
        &["status"][..],
        &["bypass", "pass"],
        &["bypass"],
        &["detach", "edge0"],
        &["attach", "edge0"],
    ] {
        let mut command = Command::new(&program.0);
        let message = one_message(&edge.run(command.args(verb).uid(NOBODY).gid(NOBODY)));
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(
            message.contains("not allowed") || message.contains("you may not"),
            "{verb:?}: {message}"
        );
        assert!(message.contains("as root"), "{verb:?}: {message}");
    }
    assert_eq!(edge.admitted(ANNA, 30), 20);
}

/// The program where a plain user may start it, wherever the workspace lies.
struct Everyones(PathBuf);

impl Everyones {
    fn copy() -> Self {
        let copy = Self(std::env::temp_dir().join(unique_name("edge")));
        fs::copy(binary().unwrap(), &copy.0).unwrap();
        fs::set_permissions(&copy.0, fs::Permissions::from_mode(0o755)).unwrap();
        copy
    }
}

impl Drop for Everyones {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_second_daemon_with_the_same_pins() {
    require!(ready());
    let edge = Edge::new();
    let first = edge.start(&policy(20, &calm()));
    let (status, program) = (edge.status(), edge.xdp("edge0"));
    let mut command = Command::new(binary().unwrap());
    start(&mut command, &edge.home, &edge.policy_path(), &["edge0"]);
    let message = one_message(&edge.run(command.args(["--metrics", "off"])));
    let expected = format!(
        "another limiter (pid {}) already runs for {}; stop it first, or give this one its own --pin-dir and --socket\n",
        first.pid(),
        edge.home.pins().display()
    );
    assert_eq!(message, expected);
    assert_eq!(edge.xdp("edge0"), program);
    let after = edge.status();
    assert_eq!((&after["pid"], &after["policy"]), (&status["pid"], &status["policy"]));
    assert_eq!(edge.admitted(BOB, 30), 20);
}

#[test]
fn a_second_daemon_with_other_pins() {
    require!(ready());
    let edge = Edge::new();
    let first = edge.start(&policy(20, &calm()));
    let program = edge.xdp("edge0").unwrap();
    let other = Home::create("edge").unwrap();
    let mut command = Command::new(binary().unwrap());
    start(&mut command, &other, &edge.policy_path(), &["edge0"]);
    at_home(command.args(["--metrics", "off"]), &other).env("RUST_BACKTRACE", "1");
    let message = one_message(&run(&edge.inside, &mut command).unwrap());
    let expected = format!(
        "edge0: another XDP program is attached (another limiter's, with its own --pin-dir; id {})",
        program.program
    );
    assert!(message.starts_with(&expected), "{message}");
    assert_eq!(message.lines().count(), 1);
    assert_no_pins(&other);
    assert!(!other.socket().exists());
    assert_eq!(edge.xdp("edge0"), Some(program));
    assert_eq!(edge.status()["pid"], first.pid());
    assert_eq!(edge.admitted(BOB, 30), 20);
}
