use super::*;
use crate::scratch::Scratch;

fn text(version: &str, limit: u32) -> String {
    format!(
        "schema = 1\n{version}\n[[rule]]\nname = \"a\"\nmatch = [{{ protocol = \"udp\" }}]\n\
         limit = {{ source = {limit} }}\nwindow = \"1s\"\n"
    )
}

fn record(version: u64, text: &str, file: &str) -> Record {
    let (text, file) = (text.to_owned(), file.to_owned());
    Record { version, origin: "socket".to_owned(), applied_unix_s: 0, text, file }
}

/// Version and text of what a start takes.
fn chosen(file: &str, record: Option<Record>, pinned: u64) -> Result<(u64, String), String> {
    let policy = Policy::parse(file).unwrap().policy;
    let offered = Offered { text: file.to_owned(), policy };
    choose(Path::new("p.toml"), offered, record, pinned)
        .map(|(_, record)| (record.version, record.text))
        .map_err(|error| error.to_string())
}

#[test]
fn a_record_ahead_of_the_maps_is_taken_as_it_is() {
    let (file, hand) = (text("", 5), text("", 6));
    assert_eq!(chosen(&file, Some(record(2, &hand, &file)), 1), Ok((2, hand)));
    let newer = text("version = 9", 5);
    assert_eq!(chosen(&newer, Some(record(9, &newer, &newer)), 7), Ok((9, newer)));
}

#[test]
fn a_record_behind_the_maps_never_takes_the_version_back() {
    let (file, hand) = (text("", 5), text("", 6));
    assert_eq!(chosen(&file, Some(record(2, &hand, &file)), 4), Ok((5, hand)));
    assert_eq!(chosen(&file, Some(record(2, &file, &file)), 4), Ok((5, file.clone())));
    let changed = text("", 7);
    assert_eq!(chosen(&changed, Some(record(2, &file, &file)), 4), Ok((5, changed)));
}

#[test]
fn a_file_with_the_version_of_the_maps_starts_whatever_became_of_the_record() {
    let (old, new) = (text("version = 5", 5), text("version = 6", 6));
    assert_eq!(chosen(&new, None, 6), Ok((6, new.clone())));
    assert_eq!(chosen(&new, Some(record(5, &old, &old)), 6), Ok((6, new.clone())));
    let other = text("version = 6", 7);
    assert!(chosen(&other, Some(record(6, &new, &new)), 6).unwrap_err().contains("version 6"));
    assert!(chosen(&old, Some(record(6, &new, &new)), 6).unwrap_err().contains("version 5"));
}

#[test]
fn what_went_wrong_is_said_although_taking_back_fails_too() {
    let scratch = Scratch::new("take-back");
    let pins = Pins::new(scratch.path());
    let layout = format!("v{}", limiter_common::layout::VERSION);
    fs::write(scratch.path().join(layout), "no directory").unwrap();
    assert!(pins.discard().is_err());
    let missing = DaemonError::NotPermitted { missing: "CAP_BPF".to_owned() };
    assert!(matches!(take_back(&pins, missing), DaemonError::NotPermitted { .. }));
}
