//! A table that is too small (promise A10 as far as built): who gives way, and who never does.

use limiter_tests::frame::Frame;
use limiter_tests::program::{Action, Program, differences};
use limiter_tests::require;

use crate::{UDP, ready};

fn from(source: u32) -> Vec<u8> {
    Frame::new().ipv4(std::net::Ipv4Addr::from(source)).udp(9).build()
}

/// Sources alone, in a table of one bucket: eight places.
fn small(limit: &str) -> Program {
    let mut program = Program::with_buckets(1);
    program.apply(&UDP.replace("source = 20, prefix = 200", limit));
    program
}

#[test]
fn a_source_at_its_limit_keeps_its_place_through_a_flood_of_forged_ones() {
    require!(ready());
    let program = small("source = 20");
    let heavy = from(0xc000_0201);
    assert_eq!(program.passes(&heavy, 25), 20);
    let before = program.counts();
    for source in 0..10_000 {
        assert_eq!(program.run(&from(0x0a00_0000 + source)), Action::Pass);
    }
    let (packets, _) = differences(&before, &program.counts());
    // Seven places: the first seven find them free, each further one displaces an earlier.
    assert_eq!(packets["rule udp displaced source"], 10_000 - 7, "{packets:?}");
    assert_eq!(packets["rule udp passed"], 10_000);
    let refused = [("refused", 1), ("rule udp refused source", 1)];
    program.expect(&heavy, Action::Drop, &refused);
}

#[test]
fn a_total_and_a_prefix_hold_while_forged_sources_fill_the_table() {
    require!(ready());
    let program = small("source = 4, prefix = 5_000, total = 2_000");
    let frames: Vec<Vec<u8>> = (0..20_000).map(|n| from(0x0a00_0000 + n * 7_919)).collect();
    let passed = frames.iter().filter(|frame| program.run(frame) == Action::Pass).count();
    assert_eq!(passed, 2_000, "the total");
    let program = small("source = 4, prefix = 200");
    let frames: Vec<Vec<u8>> = (0..20_000).map(|n| from(0x0a00_0000 + n % 256)).collect();
    let passed = frames.iter().filter(|frame| program.run(frame) == Action::Pass).count();
    assert_eq!(passed, 200, "the prefix");
}

#[test]
fn where_all_places_are_taken_by_sources_at_their_limits_the_coarser_levels_judge() {
    require!(ready());
    let program = small("source = 1, total = 12");
    // One place is the total's.
    for source in 1..8 {
        assert_eq!(program.passes(&from(source), 2), 1);
    }
    for source in 8..13 {
        let crowded = [("admitted", 1), ("rule udp passed", 1), ("rule udp crowded source", 1)];
        program.expect(&from(source), Action::Pass, &crowded);
    }
    program.expect(&from(13), Action::Drop, &[("refused", 1), ("rule udp refused total", 1)]);
}
