//! The exporter over real TCP, with a fake daemon behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use std::net::SocketAddr;

use limiter_userspace::control::model::Status;
use limiter_userspace::telemetry::exporter::{self, ExporterError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn start(status: Status) -> SocketAddr {
    let listener = exporter::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(exporter::serve(listener, fake::start(status), std::future::pending()));
    address
}

async fn get(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[tokio::test]
async fn metrics_come_as_openmetrics() {
    let (head, body) = get(start(fake::status()).await, "/metrics").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let content = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(content), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    for line in [
        "limiter_frames_total{exit=\"admitted\"} 10",
        "limiter_rule_packets_total{rule=\"new-connections\",verdict=\"refused\",level=\"source\"} 4",
        "limiter_policy_version 7.0",
        "limiter_interface_attached{interface=\"eth1\",mode=\"generic\"} 1.0",
    ] {
        assert!(body.lines().any(|found| found == line), "{line} not in {body}");
    }
}

#[tokio::test]
async fn a_host_that_limits_is_ready() {
    let address = start(fake::status()).await;
    for (path, expected) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let (head, body) = get(address, path).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!(body, expected);
    }
    let (_, index) = get(address, "/").await;
    assert!(index.contains("href=\"/metrics\""), "{index}");
}

#[tokio::test]
async fn a_host_that_does_not_says_why() {
    let mut status = fake::status();
    status.policy.version = 0;
    status.interfaces[1].attached = "none".into();
    status.interfaces[1].problem = Some("no such interface".into());
    let address = start(status).await;
    let (head, body) = get(address, "/readyz").await;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(body, "no policy in force\neth1: not attached: no such interface\n");
    assert!(get(address, "/healthz").await.0.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_stopped_loop_is_503_and_not_empty_metrics() {
    let (commands, gone) = tokio::sync::mpsc::channel(1);
    drop(gone);
    let listener = exporter::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(exporter::serve(listener, commands, std::future::pending()));
    let (head, body) = get(address, "/metrics").await;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(body, "the daemon is shutting down; ask again once it has started\n");
}

#[tokio::test]
async fn a_port_in_use_is_named_with_the_way_out() {
    let address = start(fake::status()).await;
    let refused = exporter::bind(address).await.unwrap_err();
    assert!(matches!(refused, ExporterError::InUse(_)));
    let expected = format!(
        "metrics address {address}: another program listens there; choose another with --metrics ADDRESS:PORT, or --metrics off"
    );
    assert_eq!(refused.to_string(), expected);
}
