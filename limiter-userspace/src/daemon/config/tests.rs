use super::*;

fn parse(text: &str) -> Result<Settings, ConfigError> {
    Settings::parse(text, Path::new("limiter.toml"))
}

fn refusal(text: &str) -> String {
    parse(text).and_then(Settings::complete).unwrap_err().to_string()
}

#[test]
fn two_settings_are_enough() {
    let config = parse("interfaces = ['eth0']\npolicy = 'p.toml'").unwrap().complete().unwrap();
    let expected = Config {
        interfaces: vec!["eth0".into()],
        attach: Attach::Native,
        policy: "p.toml".into(),
        metrics: Some(DEFAULT_METRICS),
        socket: "/run/limiter/limiter.sock".into(),
        socket_group: None,
        pin_dir: "/sys/fs/bpf/limiter".into(),
        state_dir: "/var/lib/limiter".into(),
        table: TableSize::Buckets(limiter_common::layout::DEFAULT_BUCKETS),
        log_format: LogFormat::Text,
        log_level: LogLevel::Info,
        stale_after: Duration::from_secs(5),
    };
    assert_eq!(config, expected);
}

#[test]
fn every_key_is_read() {
    let text = r#"
        interfaces = ["eth0", "eth1"]
        attach = "generic"
        policy = "/p"
        metrics = "off"
        socket = "/s"
        socket_group = "ops"
        pin_dir = "/pins"
        state_dir = "/state"
        table_buckets = 1024
        log_format = "json"
        log_level = "debug"
        stale_after = "1500ms"
    "#;
    let expected = Config {
        interfaces: vec!["eth0".into(), "eth1".into()],
        attach: Attach::Generic,
        policy: "/p".into(),
        metrics: None,
        socket: "/s".into(),
        socket_group: Some("ops".into()),
        pin_dir: "/pins".into(),
        state_dir: "/state".into(),
        table: TableSize::Buckets(1024),
        log_format: LogFormat::Json,
        log_level: LogLevel::Debug,
        stale_after: Duration::from_millis(1500),
    };
    assert_eq!(parse(text).unwrap().complete().unwrap(), expected);
}

#[test]
fn the_command_line_goes_over_the_file() {
    let file = parse("interfaces = ['eth0']\npolicy = 'file'\nmetrics = 'off'").unwrap();
    let flags = parse("interfaces = ['eth9']\npolicy = 'flag'").unwrap();
    let config = flags.over(file).complete().unwrap();
    assert_eq!(config.interfaces, ["eth9"]);
    assert_eq!(config.policy, Path::new("flag"));
    assert_eq!(config.metrics, None);
}

#[test]
fn a_size_is_said_in_buckets_or_in_sources() {
    let both = "interfaces = ['eth0']\npolicy = 'p'\n";
    let file = |text: &str| parse(&format!("{both}{text}")).unwrap();
    let size = |settings: Settings| settings.complete().map(|config| config.table);
    assert_eq!(size(file("table_sources = 1000000")).unwrap(), TableSize::Sources(1_000_000));
    // What the command line says replaces what the file says, whichever way each says it.
    let flags = parse("table_sources = 5").unwrap();
    assert_eq!(size(flags.over(file("table_buckets = 1024"))).unwrap(), TableSize::Sources(5));
    let flags = parse("table_buckets = 1024").unwrap();
    assert_eq!(size(flags.over(file("table_sources = 5"))).unwrap(), TableSize::Buckets(1024));
    let told = size(file("table_buckets = 1024\ntable_sources = 5")).unwrap_err().to_string();
    assert!(told.contains("keep table_sources"), "{told}");
    assert_eq!(
        refusal("table_sources = 0"),
        "limiter.toml line 1: no table is for 0 sources: a number from 1 to 33554432, such as 1000000; correct this line"
    );
}

#[test]
fn sources_make_a_table_by_the_keys_they_take() {
    let buckets = |sources, keys| TableSize::Sources(sources).buckets(keys);
    assert_eq!(buckets(1_000_000, 1).unwrap(), 1 << 19);
    assert_eq!(buckets(1_000_000, 4).unwrap(), 1 << 21);
    assert_eq!(buckets(1, 1).unwrap(), Buckets::MIN);
    assert_eq!(buckets(Sources::MAX, 1).unwrap(), Buckets::MAX);
    assert_eq!(TableSize::Buckets(1024).buckets(32).unwrap(), 1024);
    assert_eq!(
        buckets(Sources::MAX, 4).unwrap_err().to_string(),
        "4 rules limit sources, and no table is for 33554432 sources with so many keys each: 8388608 at most"
    );
}

#[test]
fn an_error_names_file_line_key_and_fix() {
    assert_eq!(
        refusal("attach = 'native'\n\npolcy = 'p'"),
        "limiter.toml line 3: unknown field `polcy`, expected one of `interfaces`, `attach`, `policy`, `metrics`, `socket`, `socket_group`, `pin_dir`, `state_dir`, `table_buckets`, `table_sources`, `log_format`, `log_level`, `stale_after`; correct this line"
    );
    assert_eq!(
        refusal("policy = 'p'\nattach = 'fast'"),
        "limiter.toml line 2: unknown variant `fast`, expected `native` or `generic`; correct this line"
    );
    assert_eq!(
        refusal("metrics = '9184'"),
        "limiter.toml line 1: \"9184\" is no address to listen on; write ADDRESS:PORT, as 127.0.0.1:9184 or [::1]:9184, or off; correct this line"
    );
    assert_eq!(
        refusal("table_buckets = 1000"),
        "limiter.toml line 1: 1000 buckets are not possible: a power of two from 16 to 16777216, such as 131072; correct this line"
    );
    assert_eq!(
        refusal("stale_after = '10'"),
        "limiter.toml line 1: \"10\" is no time from 1s to 1h; write it as 5s or 1500ms; correct this line"
    );
    assert_eq!(
        refusal("policy = 'p'\ninterfaces = ['eth0', '../../etc']"),
        "limiter.toml line 2: no interface can be called \"../../etc\": names have 1 to 15 bytes, no slash and no space (`ip link` lists them); correct this line"
    );
    assert!(refusal("interfaces = [").starts_with("limiter.toml line 1: "));
}

#[test]
fn what_is_missing_is_said_with_the_flag_that_gives_it() {
    assert!(refusal("policy = 'p'").contains("--iface IFACE"));
    assert!(refusal("interfaces = ['eth0']").contains("--policy FILE"));
    assert!(refusal("interfaces = ['a', 'a']\npolicy = 'p'").contains("\"a\" is named twice"));
    let missing = Settings::read(Path::new("/nowhere/limiter.toml")).unwrap_err().to_string();
    assert_eq!(
        missing,
        "/nowhere/limiter.toml: cannot read the configuration: No such file or directory (os error 2); check the path given to --config"
    );
}
