//! Puts a question to the daemon's loop and waits for the answer, but not for ever. Knows neither
//! HTTP nor what is asked.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::command::{Answer, Command};

/// How long the daemon's loop may take to answer, queueing included.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The daemon said no; its words.
    #[error("{0}")]
    Refused(String),
    /// The loop is there, but busy or stuck.
    #[error(
        "the daemon did not answer within {} s: it is overloaded or stuck; look at its log, then restart it (limits hold meanwhile)",
        DEADLINE.as_secs()
    )]
    Deadline,
    /// The loop has ended.
    #[error("the daemon is shutting down; ask again once it has started")]
    Stopped,
}

/// Sends the command that `make` builds around the place for its answer.
///
/// # Errors
/// If the daemon refuses, has stopped, or takes longer than [`DEADLINE`].
pub async fn ask<T>(
    commands: &mpsc::Sender<Command>,
    make: impl FnOnce(Answer<T>) -> Command,
) -> Result<T, AskError> {
    let (answer, answered) = oneshot::channel();
    let exchange = async {
        if commands.send(make(answer)).await.is_err() {
            return Err(AskError::Stopped);
        }
        match answered.await {
            Ok(answer) => answer.map_err(AskError::Refused),
            Err(oneshot::error::RecvError { .. }) => Err(AskError::Stopped),
        }
    };
    tokio::time::timeout(DEADLINE, exchange).await.unwrap_or(Err(AskError::Deadline))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stuck_daemon_is_given_up() {
        let (commands, _kept_but_never_read) = mpsc::channel(1);
        assert_eq!(ask(&commands, Command::Status).await.unwrap_err(), AskError::Deadline);
        // Nor does a full queue hold anyone up.
        assert_eq!(ask(&commands, Command::Status).await.unwrap_err(), AskError::Deadline);
    }

    #[tokio::test]
    async fn a_stopped_daemon_is_told_from_a_slow_one() {
        let (commands, gone) = mpsc::channel(1);
        drop(gone);
        assert_eq!(ask(&commands, Command::Status).await.unwrap_err(), AskError::Stopped);
    }

    #[tokio::test]
    async fn a_question_dropped_by_the_loop_is_an_error_too() {
        let (commands, mut received) = mpsc::channel(1);
        let (answer, ()) = tokio::join!(ask(&commands, Command::Counts), async {
            drop(received.recv().await);
        });
        assert_eq!(answer.unwrap_err(), AskError::Stopped);
    }
}
