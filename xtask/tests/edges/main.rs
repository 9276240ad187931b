//! The edges between crates and modules that ARCHITECTURE.md draws: who may name whom. Reads sources and
//! manifests as text; a part that isn't built yet has nothing to break.

mod source;

use std::path::Path;

use source::{Source, read_all, root};

const SOCKETS: [&str; 6] =
    ["TcpListener", "TcpStream", "UdpSocket", "UnixDatagram", "UnixListener", "UnixStream"];
/// What does I/O, or reads a clock.
const OUTSIDE: [&str; 7] = ["aya", "aya_log", "tokio", "redis", "std::fs", "rustix", "::now("];

/// Asserts that none of the files names any of the words.
fn assert_never(files: &[Source], words: &[&str], why: &str) {
    let found: Vec<String> = files
        .iter()
        .flat_map(|file| {
            let named = words.iter().filter(|word| file.names(word));
            named.map(|word| format!("{} names `{word}`", file.path))
        })
        .collect();
    assert!(found.is_empty(), "{why}:\n  {}", found.join("\n  "));
}

fn without(files: Vec<Source>, path: &str) -> Vec<Source> {
    files.into_iter().filter(|file| !file.path.starts_with(path)).collect()
}

fn count_where(files: &[Source], word: &str) -> Vec<String> {
    files.iter().filter(|file| file.names(word)).map(|file| file.path.clone()).collect()
}

#[test]
fn the_common_crate_has_no_std_no_clock_and_no_floats() {
    let files = read_all("limiter-common/src");
    assert!(!files.is_empty(), "limiter-common has no sources");
    let words = ["std", "alloc", "f32", "f64", "Instant", "SystemTime"];
    assert_never(&files, &words, "limiter-common also runs in the kernel");
}

#[test]
fn only_the_datapath_knows_aya() {
    let files = without(read_all("limiter-userspace/src"), "limiter-userspace/src/datapath");
    assert_never(&files, &["aya", "aya_log", "aya_obj"], "only datapath/ talks to the kernel");
}

#[test]
fn what_decides_does_no_io_and_reads_no_clock() {
    let pure = [
        "limiter-userspace/src/policy",
        "limiter-userspace/src/snapshot",
        "limiter-userspace/src/telemetry/counts",
        "limiter-userspace/src/authority/manager",
    ];
    for part in pure {
        let files = read_all(part);
        assert_never(
            &files,
            &OUTSIDE,
            "the policy, its compiled form and the lease manager are pure",
        );
        assert_never(
            &files,
            &SOCKETS,
            "the policy, its compiled form and the lease manager are pure",
        );
    }
}

#[test]
fn the_datapath_knows_neither_policy_nor_authority() {
    let files = read_all("limiter-userspace/src/datapath");
    let words = ["crate::policy", "crate::authority"];
    assert_never(&files, &words, "datapath/ writes what a snapshot says and asks nobody why");
}

#[test]
fn one_file_of_the_kernel_program_knows_each_dangerous_thing() {
    let files = read_all("limiter-ebpf/src");
    for (word, home) in [
        ("xdp_action", "verdict.rs"),
        ("#[map", "maps.rs"),
        ("#[btf_map", "maps.rs"),
        (".data()", "frame.rs"),
        (".data_end()", "frame.rs"),
    ] {
        let elsewhere =
            count_where(&without(files.clone(), &format!("limiter-ebpf/src/{home}")), word);
        assert!(elsewhere.is_empty(), "`{word}` belongs into {home} alone: {elsewhere:?}");
    }
}

#[test]
fn the_kernel_program_stays_small() {
    const MOST: usize = 700;
    let lines: usize = read_all("limiter-ebpf/src").iter().map(|file| file.lines).sum();
    assert!(
        lines <= MOST,
        "limiter-ebpf has {lines} lines of code, {MOST} is the most: move what needs no kernel into limiter-common"
    );
}

#[test]
fn crates_depend_on_what_they_may() {
    let allowed = [
        ("limiter-common", &["network-types", "aya"][..]),
        ("limiter-ebpf", &["limiter-common", "aya-ebpf", "aya-log-ebpf"][..]),
    ];
    for (name, may) in allowed {
        let others: Vec<_> =
            dependencies(name).into_iter().filter(|dep| !may.contains(&dep.as_str())).collect();
        assert!(others.is_empty(), "{name} may depend on {may:?} alone, not on {others:?}");
    }
    let ours: Vec<_> = dependencies("limiter-userspace")
        .into_iter()
        .filter(|dep| dep.starts_with("limiter-") || dep == "xtask")
        .collect();
    assert_eq!(ours, ["limiter-common"], "the daemon builds on limiter-common alone");
}

#[test]
fn the_kernel_program_gets_no_aya_from_the_common_crate() {
    let manifest = manifest("limiter-common");
    let aya = &manifest["dependencies"]["aya"];
    assert_eq!(aya.get("optional").and_then(toml::Value::as_bool), Some(true));
}

fn manifest(name: &str) -> toml::Table {
    let path = root().join(name).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Direct dependencies of every target; those of tests and build scripts don't ship.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = manifest(name);
    let names = |table: &toml::Value| -> Vec<String> {
        let table = table.get("dependencies").and_then(toml::Value::as_table);
        table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
    };
    let mut all = names(&toml::Value::Table(manifest.clone()));
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        all.extend(targets.values().flat_map(names));
    }
    all
}

#[test]
fn an_edge_that_is_crossed_is_found() {
    let crossing =
        Source::new("a.rs", "use std::{io, fs::File};\nfn f() -> Instant { Instant::now() }");
    for word in ["std::fs", "std", "Instant", "::now("] {
        assert!(crossing.names(word), "{word}");
    }
    assert!(!crossing.names("std::net"));
    assert!(!Source::new("a.rs", "// std\nconst A: &str = \"std\"; fn stdlib() {}").names("std"));
    assert!(Path::new(root()).join("Cargo.toml").is_file());
}
