//! Client and server of the control socket over a real unix socket, with a fake daemon behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use fake::Daemon;
use limiter_userspace::control::client::{Client, ClientError};
use limiter_userspace::control::command::{ModeChange, TopBy};

/// The status line and body of an answer to bytes as they are.
fn raw(daemon: &Daemon, request: &str) -> (String, String) {
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

fn get(daemon: &Daemon, path: &str) -> (String, String) {
    raw(daemon, &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
}

#[tokio::test]
async fn every_question_gets_its_answer() {
    let daemon = Daemon::start();
    let client = Client::new(&daemon.socket());
    assert_eq!(client.status().await.unwrap().policy.version, 7);
    let explained = client.explain("2001:db8::1".parse().unwrap()).await.unwrap();
    assert_eq!(explained.address, "2001:db8::1");
    assert_eq!(client.top(TopBy::Source, 2).await.unwrap().rows.len(), 2);
    assert_eq!(client.top(TopBy::Prefix, 9).await.unwrap().by, "prefix");
    assert_eq!(client.policy().await.unwrap().text, fake::POLICY);
    assert_eq!(client.apply(fake::POLICY.into()).await.unwrap().version, 8);
    let change = ModeChange {
        rule: "new-connections".into(),
        mode: "shadow".into(),
        owner: "anna".into(),
        reason: "a \"quoted\" word".into(),
    };
    let applied = client.mode(&change).await.unwrap();
    assert_eq!(applied.warnings, ["shadow by anna: a \"quoted\" word"]);
}

#[tokio::test]
async fn a_mapped_address_is_asked_for_as_ipv4() {
    let daemon = Daemon::start();
    let client = Client::new(&daemon.socket());
    let explained = client.explain("::ffff:192.0.2.7".parse().unwrap()).await.unwrap();
    assert_eq!(explained.address, "192.0.2.7");
}

#[tokio::test]
async fn a_refusal_keeps_the_daemons_words() {
    let daemon = Daemon::start();
    let refused = Client::new(&daemon.socket()).apply(fake::BAD.into()).await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused(_)));
    assert_eq!(refused.to_string(), "policy refused: 1 mistake\nrule \"a\": limit: missing");
}

#[tokio::test]
async fn a_policy_beyond_a_mebibyte_is_refused_in_words() {
    let daemon = Daemon::start();
    let client = Client::new(&daemon.socket());
    let refused = client.apply("#".repeat((1 << 20) + 1)).await.unwrap_err().to_string();
    assert_eq!(refused, "the policy is larger than 1024 KiB; split its rules");
    assert_eq!(client.apply("#".repeat(1 << 20)).await.unwrap().version, 8);
}

#[test]
fn wrong_requests_are_refused_as_json() {
    let daemon = Daemon::start();
    let cases = [
        ("/v1/explain?address=nonsense", "400 Bad Request"),
        ("/v1/explain", "400 Bad Request"),
        ("/v1/top?by=planet", "400 Bad Request"),
        ("/v1/top?colour=red", "400 Bad Request"),
        ("/v1/mode", "404 Not Found"),
        ("/v2/status", "404 Not Found"),
    ];
    for (path, expected) in cases {
        let (status, body) = get(&daemon, path);
        assert_eq!(status, format!("HTTP/1.1 {expected}"), "{path}: {body}");
        assert!(body.starts_with("{\"error\":\""), "{path}: {body}");
    }
    let (status, body) = raw(
        &daemon,
        "POST /v1/mode HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
    );
    assert_eq!(status, "HTTP/1.1 422 Unprocessable Entity");
    assert!(body.contains("missing field `rule`"), "{body}");
}

#[test]
fn a_refusal_by_the_daemon_is_422() {
    let daemon = Daemon::start();
    let (status, _) = raw(
        &daemon,
        "PUT /v1/policy HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 7\r\n\r\nmistake",
    );
    assert_eq!(status, "HTTP/1.1 422 Unprocessable Entity");
}

#[tokio::test]
async fn a_stopped_daemon_leaves_no_socket_and_a_clear_message() {
    let mut daemon = Daemon::start();
    let path = daemon.socket();
    daemon.stop();
    assert!(!path.exists());
    let refused = Client::new(&path).status().await.unwrap_err().to_string();
    let expected = format!(
        "no daemon answers on {}: No such file or directory (os error 2); start it with `limiter run --iface IFACE --policy FILE`, or name its socket with --socket",
        path.display()
    );
    assert_eq!(refused, expected);
}

#[tokio::test]
async fn a_daemon_that_ends_in_between_is_not_taken_for_another_version() {
    let daemon = Daemon::start();
    let path = daemon.directory().join("ending.sock");
    let ending = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let thread = std::thread::spawn(move || drop(ending.accept()));
    let refused = Client::new(&path).status().await.unwrap_err();
    assert!(matches!(refused, ClientError::WentAway(_)), "{refused}");
    thread.join().unwrap();
}

#[tokio::test]
async fn another_program_on_the_socket_is_told_from_the_daemon() {
    let daemon = Daemon::start();
    let path = daemon.directory().join("other.sock");
    let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        // Not before the question came: that would look like a daemon that is stopping.
        stream.read_exact(&mut [0]).unwrap();
        stream.write_all(b"220 mail.example ESMTP\r\n").unwrap();
    });
    let refused = Client::new(&path).status().await.unwrap_err();
    assert!(matches!(refused, ClientError::NotUnderstood { .. }), "{refused}");
    thread.join().unwrap();
}
