//! Keeps a crowd at the metrics port from using up what the rest of the daemon needs: so many
//! connections at once, each for so long. Knows no HTTP.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// Connections at once; more wait in the kernel. Each is a descriptor, and the daemon may have no more
/// than 1,024 for everything.
const CONNECTIONS: usize = 64;
/// A connection's life. Whoever scrapes less often connects again.
const LIFE: Duration = Duration::from_secs(30);

/// See the module.
pub(super) struct Crowd {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

impl Crowd {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, room: Arc::new(Semaphore::new(CONNECTIONS)) }
    }
}

impl Listener for Crowd {
    type Io = Guest;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guest, SocketAddr) {
        // The semaphore is never closed; if it were, there would be no limit.
        let room = Arc::clone(&self.room).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Guest { stream, end: Box::pin(sleep(LIFE)), _room: room }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends by itself.
pub(super) struct Guest {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Guest {
    fn stream(&mut self, context: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(Pin::new(&mut self.stream)),
        }
    }
}

impl AsyncRead for Guest {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_read(context, buffer)
    }
}

impl AsyncWrite for Guest {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream(context)?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream as Client;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn idle_connections_keep_others_out_no_longer_than_their_lives() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new();
        let server = tokio::spawn(async { axum::serve(Crowd::new(listener), router).await });
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut client = Client::connect(address).unwrap();
            client.write_all(b"GET / HTTP/1.1\r\n").unwrap();
            idle.push(client);
        }
        let begun = tokio::time::Instant::now();
        let next = TcpStream::connect(address).await.unwrap();
        next.writable().await.unwrap();
        next.try_write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        next.readable().await.unwrap();
        assert!(begun.elapsed() >= LIFE);
        server.abort();
    }
}
