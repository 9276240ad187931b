//! Runs an HTTP server until it is told to stop, and a little longer. Knows no routes.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use tokio::sync::oneshot;

/// How long open requests may go on once the daemon stops: one client that never ends its request
/// must not keep it from stopping.
const GRACE: Duration = Duration::from_secs(2);

/// Serves until `shutdown` resolves; then takes no new connections and ends within [`GRACE`].
pub(crate) async fn serve<L>(
    listener: L,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()>
where
    L: Listener,
    L::Addr: Debug,
{
    let (stopping, stopped) = oneshot::channel::<()>();
    let shutdown = async move {
        shutdown.await;
        drop(stopping);
    };
    let server = axum::serve(listener, router).with_graceful_shutdown(shutdown);
    tokio::select! {
        ended = server.into_future() => ended,
        () = async { let _dropped = stopped.await; tokio::time::sleep(GRACE).await } => Ok(()),
    }
}
