//! A monitoring system's side of the exporter: HTTP and the OpenMetrics text, read with no help from the
//! daemon's own code. Strict, so that what it takes any scraper takes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use limiter_tests::net::Namespace;

const PATIENCE: Duration = Duration::from_secs(10);

/// Status and body.
pub(crate) fn get(namespace: &Namespace, address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream =
        namespace.run(|| TcpStream::connect_timeout(&address, PATIENCE)).unwrap().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect(&answer);
    assert!(!head.to_lowercase().contains("chunked"), "{head}");
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

pub(crate) type Labels = BTreeMap<String, String>;

/// One scrape.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) samples: BTreeMap<(String, Labels), f64>,
}

pub(crate) fn metrics(namespace: &Namespace, address: SocketAddr) -> Metrics {
    let (status, text) = get(namespace, address, "/metrics");
    assert_eq!(status, 200, "{text}");
    Metrics::parse(&text)
}

impl Metrics {
    /// # Panics
    /// If the text isn't OpenMetrics as far as this project needs it.
    pub(crate) fn parse(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF");
        let mut families = BTreeSet::new();
        let mut metrics = Self::default();
        for line in body.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let mut words = comment.splitn(3, ' ');
                let (kind, name) = (words.next().unwrap(), words.next().expect(line));
                assert!(["HELP", "TYPE", "UNIT"].contains(&kind), "{line}");
                families.insert(name.to_owned());
                continue;
            }
            let (name, labels, value) = sample(line);
            let family = name.strip_suffix("_total").unwrap_or(&name);
            assert!(families.contains(family), "undeclared: {line}");
            assert_eq!(metrics.samples.insert((name, labels), value), None, "twice: {line}");
        }
        metrics
    }

    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(label, value)| (label.to_string(), value.to_string()));
        let key = (name.to_owned(), labels.collect());
        *self.samples.get(&key).unwrap_or_else(|| panic!("no {key:?} in {self:#?}"))
    }

    /// All series without their values.
    pub(crate) fn series(&self) -> BTreeSet<(String, Labels)> {
        self.samples.keys().cloned().collect()
    }
}

fn sample(line: &str) -> (String, Labels, f64) {
    let (series, value) = line.rsplit_once(' ').expect(line);
    let (name, labels) = match series.strip_suffix('}') {
        Some(series) => series.split_once('{').expect(line),
        None => (series, ""),
    };
    assert!(name.starts_with("limiter_"), "{line}");
    let labels = labels.split(',').filter(|label| !label.is_empty()).map(|label| {
        let (name, value) = label.split_once('=').expect(line);
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).expect(line);
        (name.to_owned(), value.to_owned())
    });
    (name.to_owned(), labels.collect(), value.parse().expect(line))
}
