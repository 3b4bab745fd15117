//! The timers of a core.

use std::time::Duration;

use runtime::local::Queue;
use runtime::task::{spawn, yield_now};
use runtime::time::{Elapsed, now, random_u64, sleep, sleep_until, wall_ms, within};

use crate::on_core;

#[test]
fn sleepers_wake_in_the_order_of_their_deadlines() {
    on_core(|| async {
        let start = now();
        let woken = Queue::bounded(10);
        // The latest asks first, so that every one after it is earlier than what is armed.
        for tenth in (0..10).rev() {
            let woken = woken.clone();
            spawn(async move {
                sleep_until(start + Duration::from_millis(50 + 10 * tenth)).await;
                woken.push((tenth, now())).await.unwrap();
            });
        }
        for expected in 0..10 {
            let (tenth, at) = woken.pop().await.unwrap();
            assert_eq!(tenth, expected);
            assert!(at >= start + Duration::from_millis(50 + 10 * tenth));
        }
        assert_eq!(runtime::stats().timers, 0);
    });
}

#[test]
fn a_deadline_in_the_past_is_no_wait() {
    on_core(|| async {
        sleep(Duration::ZERO).await;
        sleep_until(now() - Duration::from_secs(1)).await;
        assert_eq!(within(now(), async { 5 }).await, Ok(5));
        assert_eq!(within(now(), std::future::pending::<()>()).await, Err(Elapsed));
    });
}

#[test]
fn within_gives_up_at_the_deadline() {
    on_core(|| async {
        let deadline = now() + Duration::from_millis(20);
        assert_eq!(within(deadline, std::future::pending::<()>()).await, Err(Elapsed));
        assert!(now() >= deadline);
        let far = now() + Duration::from_secs(3600);
        assert_eq!(within(far, sleep(Duration::from_millis(1))).await, Ok(()));
        assert_eq!(runtime::stats().timers, 0);
    });
}

#[test]
fn dropped_timers_leave_nothing() {
    on_core(|| async {
        let far = now() + Duration::from_secs(3600);
        for _ in 0..100 {
            let mut sleeps: Vec<_> = (0..1000).map(|_| Box::pin(sleep_until(far))).collect();
            for sleep in &mut sleeps {
                assert!(futures_lite::future::poll_once(sleep).await.is_none());
            }
            assert_eq!(runtime::stats().timers, 1000);
        }
        assert_eq!(runtime::stats().timers, 0);
        yield_now().await;
        // Those that are left still fire.
        sleep(Duration::from_millis(1)).await;
    });
}

#[test]
fn a_timer_polled_again_is_one_timer() {
    on_core(|| async {
        let mut long = Box::pin(sleep(Duration::from_secs(3600)));
        for _ in 0..1000 {
            assert!(futures_lite::future::poll_once(&mut long).await.is_none());
            yield_now().await;
        }
        assert_eq!(runtime::stats().timers, 1);
    });
}

#[test]
fn the_clocks_go_on() {
    on_core(|| async {
        let (first, wall) = (now(), wall_ms());
        sleep(Duration::from_millis(5)).await;
        assert!(now() - first >= Duration::from_millis(5));
        assert!(wall_ms() >= wall && wall > 1_700_000_000_000);
        assert_ne!(random_u64(), random_u64());
    });
}
