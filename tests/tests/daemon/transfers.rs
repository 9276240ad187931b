//! A connection that is open, while somebody forges its address (promise A10): a real transfer under a
//! limit on new connections loses nothing.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use limiter_tests::frame::{Flags, Frame};
use limiter_tests::require;
use socket2::{Domain, Socket, Type};

use super::edge::{ANNA, Edge, HOST, MAC, METRICS, PORT, calm};
use super::{http, ready};

const ROUNDS: usize = 100;
/// In each round.
const FORGED: u32 = 1_000;
const SENT: usize = 20_000;
/// For a lost packet TCP waits a fifth of a second and more; what is never let through ends this wait.
const PATIENCE: Duration = Duration::from_secs(20);

fn policy() -> String {
    let rule = |name: &str, packets: &str, limit: &str| {
        format!(
            "[[rule]]\nname = \"{name}\"\nmatch = [{{ protocol = \"tcp\"{packets} }}]\n\
             limit = {{ {limit} }}\nwindow = \"{}\"\n",
            calm()
        )
    };
    let syn = rule("syn", ", packets = \"tcp-syn\"", "source = 20, prefix = 200");
    format!("schema = 1\n{syn}{}", rule("tcp", "", "source = 100_000"))
}

/// A connection from ANNA to the service: both ends.
fn connection(edge: &Edge) -> (TcpStream, TcpStream) {
    let listener = edge.inside.run(|| TcpListener::bind((HOST, PORT))).unwrap().unwrap();
    let connect = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((ANNA, 0)).into())?;
        socket.connect_timeout(&SocketAddr::from((HOST, PORT)).into(), PATIENCE)?;
        std::io::Result::Ok(TcpStream::from(socket))
    };
    let client = edge.outside.run(connect).unwrap().unwrap();
    let (server, from) = listener.accept().unwrap();
    assert_eq!(from.ip(), ANNA);
    for end in [&client, &server] {
        end.set_read_timeout(Some(PATIENCE)).unwrap();
        end.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    (client, server)
}

#[test]
fn an_open_transfer_loses_nothing_while_its_address_is_forged_in_a_hundred_thousand_syns() {
    require!(ready());
    let edge = Edge::new();
    let _daemon = edge.start(&policy());
    let (mut client, mut server) = connection(&edge);
    let syn = Frame::new().ethernet(MAC, [2, 0, 0, 0, 0, 9]).ipv4(ANNA).destination(HOST);
    // To a port where nobody listens.
    let (socket, syn) = (edge.frames(0), syn.tcp(9, Flags::SYN).build());
    let (data, mut arrived) = (vec![7; SENT], vec![0; SENT]);
    for _ in 0..ROUNDS {
        (0..FORGED).for_each(|_| socket.send(&syn).unwrap());
        client.write_all(&data).unwrap();
        server.read_exact(&mut arrived).unwrap();
        server.write_all(b"ok").unwrap();
        client.read_exact(&mut arrived[..2]).unwrap();
    }
    let metrics = http::metrics(&edge.inside, METRICS);
    let count = |rule, verdict, level| {
        let labels = [("rule", rule), ("verdict", verdict), ("level", level)];
        metrics.value("limiter_rule_packets_total", &labels)
    };
    // The connection's own SYN is one of the twenty that passed.
    let syns = f64::from(ROUNDS as u32 * FORGED + 1);
    assert_eq!(count("syn", "passed", ""), 20.0);
    assert_eq!(count("syn", "refused", "source"), syns - 20.0);
    assert_eq!(count("tcp", "refused", "source"), 0.0);
    assert_eq!(count("tcp", "contended", ""), 0.0);
    let frames = count("tcp", "passed", "") - 20.0;
    assert!(frames > f64::from(ROUNDS as u32), "{frames} frames of the transfer");
}
