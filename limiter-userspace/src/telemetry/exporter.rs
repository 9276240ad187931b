//! What monitoring asks over TCP: `/metrics`, `/healthz`, `/readyz`. Reads only; nothing that changes
//! anything belongs here, since anyone who reaches the address may ask.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::crowd::Crowd;
use super::metrics::{CONTENT_TYPE, Observation, text};
use crate::control::ask::{AskError, ask};
use crate::control::command::Command;
use crate::control::graceful;
use crate::control::model::Status;

const INDEX: &str = "<!doctype html><title>limiter</title><h1>limiter</h1>\
    <ul><li><a href=\"/metrics\">metrics</a><li><a href=\"/healthz\">healthz</a>\
    <li><a href=\"/readyz\">readyz</a></ul>\n";

/// Why the exporter can't listen.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// Someone else has the port.
    #[error(
        "metrics address {0}: another program listens there; choose another with --metrics ADDRESS:PORT, or --metrics off"
    )]
    InUse(SocketAddr),
    /// The system said no.
    #[error(
        "metrics address {address}: {source}; choose an address of this host with --metrics ADDRESS:PORT, or --metrics off"
    )]
    Io {
        /// The address asked for.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
}

/// Listens on this address; port 0 takes any free one.
///
/// # Errors
/// If the address is taken, or not ours to take.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, ExporterError> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ExporterError::InUse(address),
        _ => ExporterError::Io { address, source },
    })
}

/// Answers until `shutdown` resolves; open requests get two seconds more.
///
/// # Errors
/// If the listener breaks.
pub async fn serve(
    listener: TcpListener,
    commands: mpsc::Sender<Command>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    graceful::serve(Crowd::new(listener), router(commands), shutdown).await
}

fn router(commands: mpsc::Sender<Command>) -> Router {
    Router::new()
        .route("/", get(|| async { Html(INDEX) }))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .with_state(commands)
}

async fn metrics(
    State(commands): State<mpsc::Sender<Command>>,
) -> Result<impl IntoResponse, Failure> {
    let counts = ask(&commands, Command::Counts).await?;
    let gauges = ask(&commands, Command::Status).await?.into();
    let text = text(Observation { counts, gauges }).map_err(|error| Failure(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text))
}

async fn readyz(State(commands): State<mpsc::Sender<Command>>) -> Result<&'static str, Failure> {
    let reasons = unready(&ask(&commands, Command::Status).await?);
    if reasons.is_empty() { Ok("ready\n") } else { Err(Failure(reasons.join("\n"))) }
}

/// What keeps this host from limiting as it was told to.
fn unready(status: &Status) -> Vec<String> {
    let mut reasons = Vec::from_iter(status.pins_problem.clone());
    if status.policy.version == 0 {
        reasons.push("no policy in force".to_owned());
    }
    for interface in status.interfaces.iter().filter(|interface| interface.attached == "none") {
        let why = interface.problem.as_deref().unwrap_or("no reason known");
        reasons.push(format!("{}: not attached: {why}", interface.name));
    }
    reasons
}

/// 503, with the reason as text.
struct Failure(String);

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        Self(error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> axum::response::Response {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", self.0)).into_response()
    }
}
