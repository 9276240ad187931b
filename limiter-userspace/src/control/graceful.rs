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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_never_ends_does_not_keep_the_daemon() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut idle = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        idle.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(listener, Router::new(), async { drop(stopped.await) }));
        tokio::time::sleep(Duration::from_millis(1)).await;
        let told = tokio::time::Instant::now();
        drop(stop);
        server.await.unwrap().unwrap();
        assert!(told.elapsed() <= GRACE + Duration::from_millis(10));
    }
}
