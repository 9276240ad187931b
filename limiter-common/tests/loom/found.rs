//! Claims at a place that was looked up before, as the program makes them, and claims for chunks: however
//! stale the place, a key has one word and is charged what it was given.

use super::*;

/// What a granted claim took.
fn amount(answer: Option<Claim>) -> u32 {
    match answer {
        Some(Claim::Granted { amount, .. }) => amount,
        _ => 0,
    }
}

/// Looks once, then tries at that place; at most `tries` times, as the program does it.
fn look_then_attempt(bucket: &Pair, ask: &Ask, tries: u32) -> u32 {
    let (room, mut place) = look(bucket, ask);
    if room == Room::None {
        return 0;
    }
    for _ in 0..tries {
        match attempt(bucket, ask, place) {
            None => place = find(bucket, ask),
            answer => return amount(answer),
        }
    }
    0
}

#[test]
fn a_place_that_was_found_before_all_others_came_makes_no_second_word() {
    for words in [
        [Word::EMPTY; 2],
        // One slot is free only for who is a tick later: see above.
        [word(7, NOW, Heat::Cold, 1), Word::EMPTY],
        // The place is a cold key's.
        [word(7, END, Heat::Cold, 1), word(6, END, Heat::Warm, 2)],
    ] {
        model_with(2, move || {
            let bucket = Pair::new(words);
            let later = ask(4, Tick(NOW.0 + 1), 2);
            let (_, stale) = look(&*bucket, &later);
            let others = [ask(4, NOW, 2), ask(8, NOW, 2)].map(|ask| {
                let bucket = bucket.clone();
                thread::spawn(move || look_then_attempt(&bucket, &ask, 2))
            });
            let mine = amount(attempt(&*bucket, &later, stale));
            let [theirs, foreign] = others.map(|other| other.join().unwrap());
            assert!(bucket.places(4) <= 1 && bucket.places(8) <= 1, "{:?}", bucket.words());
            assert!(mine + theirs <= 2);
            let reserved = bucket.words().iter().any(|word| word.value() == RESERVED);
            assert!(!reserved, "{:?}", bucket.words());
            // Nobody was charged for another, whoever was displaced.
            for (key, most) in [(4, mine + theirs), (8, foreign)] {
                let used =
                    bucket.words().into_iter().filter(|it| it.belongs_to(Fingerprint::new(key)));
                assert!(used.map(Word::value).sum::<u32>() <= most, "{:?}", bucket.words());
            }
        });
    }
}

#[test]
fn a_place_of_the_window_before_begins_the_new_one_once() {
    model_with(2, || {
        let bucket = Pair::new([word(5, OLD_END, Heat::Spent, 2), Word::EMPTY]);
        // Looked up in the old window, used in the new one.
        let (_, stale) = look(&*bucket, &ask(5, Tick(OLD_END.0 - 1), 2));
        let others = [0, 1].map(|_| {
            let bucket = bucket.clone();
            thread::spawn(move || look_then_attempt(&bucket, &ask(5, OLD_END, 2), 2))
        });
        let mine = amount(attempt(&*bucket, &ask(5, OLD_END, 2), stale));
        let granted = mine + others.map(|other| other.join().unwrap()).iter().sum::<u32>();
        assert!((1..=2).contains(&granted), "somebody got in, and nobody twice");
        assert_eq!((bucket.only(5).end(), bucket.only(5).value()), (END.low(), granted));
    });
}

#[test]
fn chunks_and_single_packets_take_no_more_than_what_is_left() {
    for (used, share) in [(1, 0), (4, 0), (0, 1), (4, 1)] {
        model_with(2, move || {
            let limit = 8;
            let bucket = Pair::new([word(5, END, Heat::Warm, used), Word::EMPTY]);
            let chunk = Ask { more: 4, share, ..ask(5, NOW, limit) };
            let others = [chunk, ask(5, NOW, limit)].map(|ask| {
                let bucket = bucket.clone();
                thread::spawn(move || amount(Some(claim(&*bucket, &ask))))
            });
            let mine = amount(Some(claim(&*bucket, &chunk)));
            let [chunk, single] = others.map(|other| other.join().unwrap());
            let passed = used + mine + chunk + single;
            assert!(passed <= limit, "{mine} {chunk} {single}");
            assert_eq!(bucket.only(5).value(), passed, "each was charged what it was given");
            assert!([mine, chunk].iter().all(|amount| [0, 1, 4].contains(amount)));
            // Three need three at least: where that much is left, each gets something.
            assert!(passed == limit || (mine > 0 && chunk > 0 && single == 1));
        });
    }
}

#[test]
fn a_chunk_that_is_drawn_after_a_look_is_had_whole_or_not_at_all() {
    model_with(2, || {
        let limit = 8;
        let bucket = Pair::new([word(5, END, Heat::Warm, 2), Word::EMPTY]);
        let draws = [0, 1].map(|_| {
            let bucket = bucket.clone();
            thread::spawn(move || {
                let whole = Ask { cost: 4, more: 4, ..ask(5, NOW, limit) };
                look_then_attempt(&bucket, &whole, 2)
            })
        });
        let single = granted(claim(&*bucket, &ask(5, NOW, limit)));
        let [one, two] = draws.map(|draw| draw.join().unwrap());
        assert!(one + two + single <= 6 && one % 4 == 0 && two % 4 == 0);
        assert_eq!(bucket.only(5).value(), 2 + one + two + single);
    });
}
