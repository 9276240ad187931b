//! The command line's side of the control socket. One connection per question, one deadline for all
//! of it; knows no verbs and prints nothing.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::ask;
use super::command::{ModeChange, TopBy};
use super::model::{Applied, Explanation, PolicyText, Refused, Status, Top};

/// A little longer than the daemon's own, so that its reason is heard.
const DEADLINE: Duration = ask::DEADLINE.saturating_add(Duration::from_secs(2));

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error(
        "no daemon answers on {}: {source}; start it with `limiter run --iface IFACE --policy FILE`, or name its socket with --socket",
        socket.display()
    )]
    NoDaemon {
        /// The socket.
        socket: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The socket is there, for others.
    #[error(
        "{}: you may not connect; ask as root, or join the group of this socket (socket_group in limiter.toml)",
        .0.display()
    )]
    NotAllowed(PathBuf),
    /// The daemon said no; its words.
    #[error("{0}")]
    Refused(String),
    /// Nothing came.
    #[error(
        "{}: no answer within {} s: the daemon is overloaded or stuck; look at its log, then restart it (limits hold meanwhile)",
        .0.display(),
        DEADLINE.as_secs()
    )]
    Deadline(PathBuf),
    /// The connection ended first.
    #[error(
        "{}: the daemon went away without an answer: it is stopping, or failed to start; look at its log",
        .0.display()
    )]
    WentAway(PathBuf),
    /// Something else came.
    #[error(
        "{}: not understood: {why}; program and daemon are of different versions (restart the daemon), or another program listens there",
        socket.display()
    )]
    NotUnderstood {
        /// The socket.
        socket: PathBuf,
        /// What was wrong with it.
        why: String,
    },
}

/// Asks the daemon behind one socket.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
}

impl Client {
    /// For this socket file; connects at each question.
    #[must_use]
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// The state of everything.
    ///
    /// # Errors
    /// See [`ClientError`]; so for all the others.
    pub async fn status(&self) -> Result<Status, ClientError> {
        self.ask(Method::GET, "/v1/status", Bytes::new()).await
    }

    /// All pools of an address.
    #[expect(clippy::missing_errors_doc, reason = "as `status`")]
    pub async fn explain(&self, address: IpAddr) -> Result<Explanation, ClientError> {
        // An address has no character that a query would have to escape.
        self.ask(Method::GET, &format!("/v1/explain?address={address}"), Bytes::new()).await
    }

    /// The busiest keys, at most `limit`.
    #[expect(clippy::missing_errors_doc, reason = "as `status`")]
    pub async fn top(&self, by: TopBy, limit: usize) -> Result<Top, ClientError> {
        let by = by.name();
        self.ask(Method::GET, &format!("/v1/top?by={by}&limit={limit}"), Bytes::new()).await
    }

    /// The policy's text.
    #[expect(clippy::missing_errors_doc, reason = "as `status`")]
    pub async fn policy(&self) -> Result<PolicyText, ClientError> {
        self.ask(Method::GET, "/v1/policy", Bytes::new()).await
    }

    /// A new policy, as TOML.
    #[expect(clippy::missing_errors_doc, reason = "as `status`")]
    pub async fn apply(&self, policy: String) -> Result<Applied, ClientError> {
        self.ask(Method::PUT, "/v1/policy", policy.into()).await
    }

    /// Another mode for a rule.
    #[expect(clippy::missing_errors_doc, reason = "as `status`")]
    pub async fn mode(&self, change: &ModeChange) -> Result<Applied, ClientError> {
        let body = serde_json::to_vec(change).map_err(|error| self.not_understood(&error))?;
        self.ask(Method::POST, "/v1/mode", body.into()).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, ClientError> {
        tokio::time::timeout(DEADLINE, self.exchange(method, path, body))
            .await
            .unwrap_or_else(|_elapsed| Err(ClientError::Deadline(self.socket.clone())))
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, ClientError> {
        let stream =
            UnixStream::connect(&self.socket).await.map_err(|error| self.unheard(error))?;
        let broken = |error| self.broken(&error);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "limiter")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| self.not_understood(&error))?;
        let answer = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            let accepted = response.status().is_success();
            let body = response.into_body().collect().await.map_err(broken)?.to_bytes();
            self.read(accepted, &body)
        };
        // The connection only moves bytes for the answer; when that is there, both end.
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            _closed = connection => answer.await,
        }
    }

    fn read<T: DeserializeOwned>(&self, accepted: bool, body: &[u8]) -> Result<T, ClientError> {
        if accepted {
            return serde_json::from_slice(body).map_err(|error| self.not_understood(&error));
        }
        let refused: Refused =
            serde_json::from_slice(body).map_err(|error| self.not_understood(&error))?;
        Err(ClientError::Refused(refused.error))
    }

    fn unheard(&self, source: io::Error) -> ClientError {
        let socket = self.socket.clone();
        match source.kind() {
            io::ErrorKind::PermissionDenied => ClientError::NotAllowed(socket),
            _ => ClientError::NoDaemon { socket, source },
        }
    }

    fn broken(&self, error: &hyper::Error) -> ClientError {
        if error.is_parse() {
            return self.not_understood(error);
        }
        ClientError::WentAway(self.socket.clone())
    }

    fn not_understood(&self, why: &impl ToString) -> ClientError {
        ClientError::NotUnderstood { socket: self.socket.clone(), why: why.to_string() }
    }
}
