//! What systemd is told, if it listens. Everywhere else these do nothing.

use sd_notify::{NotifyState, notify};

/// The daemon enforces and answers.
pub(super) fn ready() {
    send(&[NotifyState::Ready]);
}

/// The policy is being read again; [`ready`] follows.
pub(super) fn reloading() {
    // systemd 253 and later want the time with it.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(_) => send(&[NotifyState::Reloading]),
    }
}

/// The daemon ends; the kernel program goes on.
pub(super) fn stopping() {
    send(&[NotifyState::Stopping]);
}

/// The loop turns.
pub(super) fn alive() {
    send(&[NotifyState::Watchdog]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(cause) = notify(states) {
        tracing::debug!(%cause, "the service manager didn't take a message");
    }
}
