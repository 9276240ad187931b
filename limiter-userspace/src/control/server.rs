//! The daemon's side of the control socket: HTTP in, commands to the daemon's loop, JSON out.
//! Decides nothing: every answer is the loop's.

use std::future::Future;
use std::net::IpAddr;
use std::path::Path;

use axum::extract::rejection::{JsonRejection, QueryRejection, StringRejection};
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use tokio::net::UnixListener;
use tokio::sync::mpsc;

use super::ask::{AskError, ask};
use super::command::{Command, ModeChange, TopBy};
use super::graceful;
use super::model::{Applied, Explanation, PolicyText, Refused, Status, Top};

/// The largest policy taken, in bytes.
const MAX_BODY: usize = 1 << 20;
/// Rows of `top` if none are asked for, and at most.
const TOP_ROWS: usize = 20;
const MAX_TOP_ROWS: usize = 1000;

type Commands = State<mpsc::Sender<Command>>;
type Reply<T> = Result<Json<T>, Refusal>;

/// Answers on the socket until `shutdown` resolves; then the socket file goes, open requests
/// get two seconds more, and this returns.
///
/// # Errors
/// If the listener breaks.
pub async fn serve(
    listener: UnixListener,
    commands: mpsc::Sender<Command>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    let shutdown = async move {
        shutdown.await;
        // Before the listener closes: after, the file may be the next daemon's already.
        address.as_pathname().map(forget);
    };
    graceful::serve(listener, router(commands), shutdown).await
}

fn forget(path: &Path) {
    // Gone already is as good; the next daemon replaces a dead file anyway.
    let _gone_already = std::fs::remove_file(path);
}

fn router(commands: mpsc::Sender<Command>) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/explain", get(explain))
        .route("/v1/top", get(top))
        .route("/v1/policy", get(policy_show).put(policy_apply))
        .route("/v1/mode", post(mode))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(commands)
}

async fn status(State(commands): Commands) -> Reply<Status> {
    Ok(Json(ask(&commands, Command::Status).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplainQuery {
    address: IpAddr,
}

async fn explain(
    State(commands): Commands,
    query: Result<Query<ExplainQuery>, QueryRejection>,
) -> Reply<Explanation> {
    // An IPv4-mapped address is the IPv4 address: packets from it are IPv4.
    let address = query?.0.address.to_canonical();
    Ok(Json(ask(&commands, |answer| Command::Explain(address, answer)).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopQuery {
    #[serde(default = "by_source")]
    by: TopBy,
    limit: Option<usize>,
}

const fn by_source() -> TopBy {
    TopBy::Source
}

async fn top(
    State(commands): Commands,
    query: Result<Query<TopQuery>, QueryRejection>,
) -> Reply<Top> {
    let Query(TopQuery { by, limit }) = query?;
    let rows = limit.unwrap_or(TOP_ROWS).min(MAX_TOP_ROWS);
    Ok(Json(ask(&commands, |answer| Command::Top(by, rows, answer)).await?))
}

async fn policy_show(State(commands): Commands) -> Reply<PolicyText> {
    Ok(Json(ask(&commands, Command::PolicyShow).await?))
}

async fn policy_apply(
    State(commands): Commands,
    text: Result<String, StringRejection>,
) -> Reply<Applied> {
    let text = text?;
    Ok(Json(ask(&commands, |answer| Command::PolicyApply(text, answer)).await?))
}

async fn mode(
    State(commands): Commands,
    change: Result<Json<ModeChange>, JsonRejection>,
) -> Reply<Applied> {
    let Json(change) = change?;
    Ok(Json(ask(&commands, |answer| Command::Mode(change, answer)).await?))
}

async fn unknown() -> Refusal {
    let error = "this daemon has no such request: program and daemon are of different versions; restart the daemon";
    Refusal(StatusCode::NOT_FOUND, error.to_owned())
}

/// A status and its words; the body is `{"error": …}`.
struct Refusal(StatusCode, String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(Refused { error: self.1 })).into_response()
    }
}

impl From<AskError> for Refusal {
    fn from(error: AskError) -> Self {
        let status = match error {
            AskError::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
            AskError::Deadline => StatusCode::GATEWAY_TIMEOUT,
            AskError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self(status, error.to_string())
    }
}

impl From<QueryRejection> for Refusal {
    fn from(rejection: QueryRejection) -> Self {
        Self(rejection.status(), rejection.body_text())
    }
}

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        Self(rejection.status(), rejection.body_text())
    }
}

impl From<StringRejection> for Refusal {
    fn from(rejection: StringRejection) -> Self {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            let error =
                format!("the policy is larger than {} KiB; split its rules", MAX_BODY >> 10);
            return Self(StatusCode::PAYLOAD_TOO_LARGE, error);
        }
        Self(rejection.status(), rejection.body_text())
    }
}
