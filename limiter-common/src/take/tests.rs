use std::cell::{Cell, RefCell};

use proptest::prelude::*;

use super::*;

/// One level's pools as plain numbers: what is left for each of four rules, `None` where the rule
/// doesn't limit the level. `thief` takes from a pool between the look and the claim.
struct Plain {
    rules: u32,
    left: RefCell<[Option<u64>; 4]>,
    thief: Cell<Option<usize>>,
    memory: Cell<u64>,
}

impl Memory for Cell<u64> {
    fn get(&self) -> u64 {
        Cell::get(self)
    }

    fn set(&self, number: u64) {
        Cell::set(self, number);
    }
}

impl LevelPools for Plain {
    fn without_room(&self) -> u32 {
        first_without_room(self.rules, |place| self.left.borrow()[place as usize] != Some(0))
    }

    fn draw(&self) -> Drawn {
        if let Some(robbed) = self.thief.take()
            && let Some(left) = &mut self.left.borrow_mut()[robbed]
        {
            *left = 0;
        }
        draw_each(self.rules, &self.memory, |place| {
            match &mut self.left.borrow_mut()[place as usize] {
                None => Step::Nothing,
                Some(0) => Step::NoRoom,
                Some(left) => {
                    *left = left.saturating_sub(1);
                    Step::Debited
                }
            }
        })
    }

    fn give_back(&self, drawn: Drawn) {
        give_back_each(drawn.rules(), |place| {
            if let Some(left) = &mut self.left.borrow_mut()[place as usize] {
                *left = left.saturating_add(1);
            }
        });
    }
}

fn pools(rules: u32, left: [Option<u64>; 4], thief: Option<usize>) -> Plain {
    Plain { rules, left: left.into(), thief: Cell::new(thief), memory: Cell::new(0) }
}

/// The promise as a sentence: the first pool without room, coarse levels first, then rules in order.
fn expected(levels: [&[Option<u64>; 4]; 3], rules: u32) -> Taken {
    for (level, left) in Level::ALL.into_iter().zip(levels) {
        for place in 0..4 {
            if rules >> place & 1 != 0 && left[place as usize] == Some(0) {
                return Taken::refused(Why::NoRoom, level, place);
            }
        }
    }
    Taken::ALL
}

fn left() -> impl Strategy<Value = [Option<u64>; 4]> {
    proptest::array::uniform4(proptest::option::of(0_u64..3))
}

proptest! {
    #[test]
    fn all_pools_are_debited_or_none(
        total in left(), prefix in left(), source in left(), rules in 0_u32..16,
    ) {
        let [t, p, s] = [total, prefix, source].map(|left| pools(rules, left, None));
        let taken = take(&t, &p, &s);
        prop_assert_eq!(taken, expected([&total, &prefix, &source], rules));
        for (pools, before) in [(&t, total), (&p, prefix), (&s, source)] {
            let mut after = before;
            for (place, left) in after.iter_mut().enumerate() {
                let debit = u64::from(taken == Taken::ALL && rules >> place & 1 != 0);
                *left = left.map(|left| left.saturating_sub(debit));
            }
            prop_assert_eq!(*pools.left.borrow(), after);
        }
    }

    #[test]
    fn a_lost_race_gives_everything_back(
        total in left(), prefix in left(), source in left(), level in 0_usize..3, robbed in 0_usize..4,
    ) {
        let rules = 0b1111;
        let lefts = [total, prefix, source];
        let thief = |at: usize| (at == level).then_some(robbed);
        let [t, p, s] = [0, 1, 2].map(|at| pools(rules, lefts[at], thief(at)));
        let taken = take(&t, &p, &s);
        for (at, pools) in [&t, &p, &s].into_iter().enumerate() {
            let mut after = lefts[at];
            for (place, left) in after.iter_mut().enumerate() {
                let stolen = at == level && place == robbed && pools.thief.get().is_none();
                let debit = u64::from(taken == Taken::ALL);
                *left = left.map(|left| if stolen { 0 } else { left.saturating_sub(debit) });
            }
            prop_assert_eq!(*pools.left.borrow(), after);
        }
    }
}

#[test]
fn a_pool_that_keeps_changing_is_tried_eight_times_and_then_refused_as_such() {
    let (memory, tries) = (Cell::new(9), Cell::new(0));
    let drawn = draw_each(0b10, &memory, |_| {
        tries.set(tries.get() + 1);
        Step::Again
    });
    assert_eq!(tries.get(), TRIES);
    assert_eq!(drawn, Drawn::refused(0, Why::Changing, 1));
}

#[test]
fn steps_come_back_from_their_numbers() {
    for step in [Step::Nothing, Step::Debited, Step::NoRoom, Step::Again] {
        assert_eq!(Step::unpack(step.pack()), step);
    }
}
