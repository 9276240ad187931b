//! The real binary against a fake daemon: what it prints, where, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use std::process::{Command, Output};

use fake::Daemon;

fn limiter(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_limiter"));
    command.args(arguments).env("RUST_BACKTRACE", "full").env_remove("LIMITER_SOCKET");
    command
}

fn ask(daemon: &Daemon, arguments: &[&str]) -> Output {
    limiter(arguments).env("LIMITER_SOCKET", daemon.socket()).output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one message of a verb that failed, and its exit code.
fn complaint(output: &Output) -> (String, Option<i32>) {
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    (String::from_utf8(output.stderr.clone()).unwrap(), output.status.code())
}

#[test]
fn every_answer_also_comes_as_json() {
    let daemon = Daemon::start();
    let file = daemon.directory().join("policy.toml");
    std::fs::write(&file, fake::POLICY).unwrap();
    let file = file.to_str().unwrap();
    let verbs: [&[&str]; 6] = [
        &["status"],
        &["explain", "192.0.2.7"],
        &["top", "--once"],
        &["policy", "show"],
        &["policy", "apply", file],
        &["mode", "new-connections", "shadow"],
    ];
    for verb in verbs {
        let text = said(&ask(&daemon, verb));
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_err(), "{text}");
        let json = said(&ask(&daemon, &[verb, &["--json"]].concat()));
        assert_eq!(json.lines().count(), 1, "{json}");
        assert!(serde_json::from_str::<serde_json::Value>(&json).unwrap().is_object(), "{json}");
    }
}

#[test]
fn a_policy_that_is_shown_can_be_applied() {
    let daemon = Daemon::start();
    let shown = said(&ask(&daemon, &["policy", "show"]));
    assert_eq!(shown, format!("# policy version 7, from p.toml\n{}", fake::POLICY));
    let file = daemon.directory().join("policy.toml");
    std::fs::write(&file, shown).unwrap();
    let applied = said(&ask(&daemon, &["policy", "apply", file.to_str().unwrap()]));
    assert_eq!(applied, "warning: limit is 0\npolicy version 8 is in force\n");
}

#[test]
fn a_mode_carries_owner_and_reason() {
    let daemon = Daemon::start();
    let arguments = ["mode", "new-connections", "shadow", "--reason", "noon"];
    let mut command = limiter(&arguments);
    command.env("LIMITER_SOCKET", daemon.socket()).env("SUDO_USER", "anna").env("USER", "root");
    let expected = "rule new-connections is now in mode shadow (policy version 7)\n\
                    warning: shadow by anna: noon\n";
    assert_eq!(said(&command.output().unwrap()), expected);
}

#[test]
fn a_refusal_is_one_message_and_exit_code_1() {
    let daemon = Daemon::start();
    let file = daemon.directory().join("policy.toml");
    std::fs::write(&file, fake::BAD).unwrap();
    let (message, code) = complaint(&ask(&daemon, &["policy", "apply", file.to_str().unwrap()]));
    assert_eq!(message, "limiter: policy refused: 1 mistake\nrule \"a\": limit: missing\n");
    assert_eq!(code, Some(1));
    let (message, code) = complaint(&ask(&daemon, &["mode", "nothing", "shadow"]));
    assert_eq!(message, "limiter: no rule is called \"nothing\"; `limiter status` lists them\n");
    assert_eq!(code, Some(1));
}

#[test]
fn without_a_daemon_the_message_says_what_to_do() {
    for verb in [&["status"][..], &["explain", "192.0.2.7"], &["top"], &["policy", "show"]] {
        let output = limiter(&[verb, &["--socket", "/nowhere/limiter.sock"]].concat()).output();
        let (message, code) = complaint(&output.unwrap());
        assert_eq!(
            message,
            "limiter: no daemon answers on /nowhere/limiter.sock: No such file or directory (os error 2); start it with `limiter run --iface IFACE --policy FILE`, or name its socket with --socket\n"
        );
        assert_eq!(code, Some(1));
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let wrong: [&[&str]; 6] = [
        &[],
        &["explain", "nonsense"],
        &["mode", "rule", "sometimes"],
        &["run", "--metrics", "9184"],
        &["run", "--table-buckets", "1000"],
        &["top", "--limit", "0"],
    ];
    for arguments in wrong {
        let (_, code) = complaint(&limiter(arguments).output().unwrap());
        assert_eq!(code, Some(2), "{arguments:?}");
    }
}

#[test]
fn run_says_what_is_missing() {
    let (message, code) = complaint(&limiter(&["run", "--iface", "eth0"]).output().unwrap());
    assert!(message.starts_with("limiter: no policy to enforce; name its file"), "{message}");
    assert_eq!(code, Some(1));
    let missing = limiter(&["run", "--config", "/nowhere.toml"]).output().unwrap();
    assert!(complaint(&missing).0.starts_with("limiter: /nowhere.toml: cannot read"));
}

#[test]
fn check_reports_what_a_good_policy_means() {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/demo.toml");
    let report = said(&limiter(&["check", demo]).output().unwrap());
    assert!(report.starts_with("rule \"demo\" (enforce)\n"), "{report}");
    assert!(report.ends_with("demo.toml: no mistakes\n"), "{report}");
    let json = said(&limiter(&["check", demo, "--json"]).output().unwrap());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["ok"], true);
    assert_eq!(json["report"]["rules"][0]["rule"], "demo");
}

#[test]
fn check_says_how_large_a_table_a_number_of_sources_needs() {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/demo.toml");
    let table = |arguments: &[&str]| {
        let said = limiter(&[&["check", demo, "--json"], arguments].concat()).output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        json["report"]["table"].clone()
    };
    let promised = table(&["--table-sources", "1000000"]);
    assert_eq!(promised["buckets"], 1 << 19);
    assert_eq!(promised["promise"]["sources"], 1_000_000);
    let load = &promised["promise"]["together"]["load_per_million"];
    assert_eq!((&load["value"], &load["basis"]), (&238_419.into(), &"computed".into()));
    // A table that is there already, and more sources than it is for.
    let small = table(&["--table-sources", "1000000", "--table-buckets", "131072"]);
    assert_eq!(small["buckets"], 131_072);
    assert_eq!(small["promise"]["together"]["load_per_million"]["value"], 953_674);
    let text = said(
        &limiter(&["check", demo, "--table-sources", "1000000", "--table-buckets", "131072"])
            .output()
            .unwrap(),
    );
    assert!(text.contains("a quarter full with 524,288 buckets"), "{text}");
    let (message, code) = complaint(
        &limiter(&["run", "--table-sources", "5", "--table-buckets", "16"]).output().unwrap(),
    );
    assert!(message.contains("cannot be used with"), "{message}");
    assert_eq!(code, Some(2));
}

#[test]
fn check_reports_all_mistakes_at_once() {
    let daemon = Daemon::start();
    let file = daemon.directory().join("bad.toml");
    let text =
        "schema = 1\nfoo = 2\n[[rule]]\nname = 'a'\nlimit = { source = 1 }\nwindow = '10x'\n";
    std::fs::write(&file, text).unwrap();
    let (message, code) = complaint(&limiter(&["check", file.to_str().unwrap()]).output().unwrap());
    let head = format!("limiter: {}: refused: 3 mistakes\nline 2: foo: ", file.display());
    assert!(message.starts_with(&head), "{message}");
    assert_eq!(code, Some(1));

    let json = limiter(&["check", file.to_str().unwrap(), "--json"]).output().unwrap();
    assert_eq!(json.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["ok"], false);
    assert_eq!(json["problems"].as_array().unwrap().len(), 3);
}

#[test]
fn verbs_without_the_daemon_say_that_nothing_is_there() {
    let cases: [(&[&str], &str); 3] = [
        (&["bypass"], "limiter: map BYPASS: /nowhere/"),
        (&["detach", "lo"], "limiter: lo: not guarded by limiter"),
        (&["attach", "lo"], "limiter: no program in /nowhere/"),
    ];
    for (verb, expected) in cases {
        let output = limiter(&[verb, &["--pin-dir", "/nowhere"]].concat()).output().unwrap();
        let (message, code) = complaint(&output);
        assert!(message.starts_with(expected), "{message}");
        assert_eq!(code, Some(1));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let daemon = Daemon::start();
    let mut command = limiter(&["top"]);
    command.env("LIMITER_SOCKET", daemon.socket()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
