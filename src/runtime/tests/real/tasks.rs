//! Tasks: yielding, work beside the loop.

use std::cell::Cell;
use std::rc::Rc;

use runtime::task::{blocking, should_yield, spawn, yield_now};

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
            // Ends only because the preemption timer fires.
            while !should_yield() {
                std::hint::spin_loop();
            }
            while should_yield() {
                yield_now().await;
            }
        }
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
