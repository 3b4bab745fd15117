//! Tasks: yielding, work beside the loop.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use runtime::task::{Unhurried, blocking, should_yield, spawn, yield_now};
use runtime::time;

use crate::on_core;

#[test]
fn yielding_lets_the_others_run() {
    on_core(|| async {
        let ran = Rc::new(Cell::new(0));
        for _ in 0..10 {
            let ran = Rc::clone(&ran);
            spawn(async move { ran.set(ran.get() + 1) });
        }
        while ran.get() < 10 {
            yield_now().await;
        }
    });
}

#[test]
fn a_long_loop_is_told_to_yield() {
    on_core(|| async {
        for _ in 0..5 {
            // Ends because the preemption timer fires, or because it was asked so often.
            while !should_yield() {
                std::hint::spin_loop();
            }
            while should_yield() {
                yield_now().await;
            }
        }
    });
}

/// However little time each takes: others wait for a bounded number of things.
#[test]
fn a_loop_over_many_things_lets_others_run_between() {
    on_core(|| async {
        let (turns, done) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let (counted, ended) = (Rc::clone(&turns), Rc::clone(&done));
        spawn(async move {
            while !ended.get() {
                counted.set(counted.get() + 1);
                yield_now().await;
            }
        });
        let (mut without_a_turn, mut seen) = (0, 0);
        for _thing in 0..100_000 {
            if should_yield() {
                yield_now().await;
            }
            without_a_turn = if turns.get() == seen { without_a_turn + 1 } else { 0 };
            seen = turns.get();
            assert!(without_a_turn <= 250, "{without_a_turn} things, {seen} turns of others");
        }
        assert!(seen >= 400, "{seen} turns of others");
        done.set(true);
    });
}

/// What comes from outside is seen although the work itself never waits for anything.
#[test]
fn unhurried_work_lets_the_core_look_around() {
    on_core(|| async {
        let came = Rc::new(Cell::new(false));
        let seen = Rc::clone(&came);
        spawn(async move {
            time::sleep(Duration::from_micros(10)).await;
            seen.set(true);
        });
        let (mut pace, mut turns) = (Unhurried::default(), 0);
        // Two milliseconds of work: less than makes the core look by itself.
        while turns < 200 {
            let begun = std::time::Instant::now();
            while begun.elapsed().as_micros() < 10 {}
            pace.turn().await;
            turns += 1;
        }
        assert!(came.get());
    });
}

#[test]
fn blocking_work_returns_what_it_found() {
    on_core(|| async {
        let here = std::thread::current().id();
        let (there, sum) =
            blocking(move || (std::thread::current().id(), (0..10).sum::<u32>())).await;
        assert_ne!(here, there);
        assert_eq!(sum, 45);
    });
}

#[test]
fn blocking_work_ends_even_when_nobody_waits() {
    on_core(|| async {
        let (sender, receiver) = runtime::mesh::oneshot();
        {
            let work = blocking(move || sender.send(1));
            runtime::task::race(work, async {}).await;
        }
        assert_eq!(receiver.await, Ok(1));
    });
}

#[test]
fn a_long_call_does_not_hold_up_a_short_one() {
    on_core(|| async {
        let (release, held) = std::sync::mpsc::channel();
        let long = blocking(move || held.recv().unwrap());
        let short = async {
            blocking(|| ()).await;
            release.send(7).unwrap();
        };
        assert_eq!(futures_lite::future::zip(long, short).await.0, 7);
    });
}
