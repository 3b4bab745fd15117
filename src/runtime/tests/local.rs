//! The primitives of one core, alone: no executor is needed for them.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures_lite::future::{block_on, poll_once, zip};
use runtime::local::{Budget, Event, Queue};
use runtime::mesh::{Closed, oneshot};
use runtime::task::{Either, race};

#[test]
fn a_listener_misses_nothing_after_it_was_made() {
    let event = Event::new();
    let before = event.listen();
    event.notify_all();
    let after = event.listen();
    block_on(async {
        assert!(poll_once(before).await.is_some());
        assert!(poll_once(after).await.is_none());
    });
}

#[test]
fn a_dropped_listener_leaves_nothing() {
    let event = Event::new();
    block_on(async {
        let mut listeners = Vec::new();
        for _ in 0..100 {
            let mut listen = Box::pin(event.listen());
            assert!(poll_once(&mut listen).await.is_none());
            assert!(poll_once(&mut listen).await.is_none());
            listeners.push(listen);
        }
        assert_eq!(event.waiting(), 100);
    });
    assert_eq!(event.waiting(), 0);
}

#[test]
fn a_queue_waits_for_room_and_for_items() {
    let queue = Queue::bounded(2);
    let taken = RefCell::new(Vec::new());
    block_on(zip(
        async {
            for item in 0..100 {
                queue.push(item).await.unwrap();
            }
            queue.close();
        },
        async {
            while let Some(item) = queue.pop().await {
                taken.borrow_mut().push(item);
            }
        },
    ));
    assert_eq!(*taken.borrow(), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_closed_queue_gives_out_what_it_has() {
    let queue = Queue::bounded(3);
    queue.try_push("first").unwrap();
    queue.try_push("second").unwrap();
    queue.close();
    assert_eq!(queue.try_push("third"), Err("third"));
    block_on(async {
        assert_eq!(queue.push("fourth").await, Err("fourth"));
        assert_eq!(queue.pop().await, Some("first"));
        assert_eq!(queue.pop().await, Some("second"));
        assert_eq!(queue.pop().await, None);
    });
}

#[test]
fn a_push_that_waits_learns_of_the_end() {
    let queue = Queue::bounded(1);
    queue.try_push(1).unwrap();
    assert_eq!(queue.try_push(2), Err(2));
    let pushed = block_on(zip(queue.push(2), async { queue.close() })).0;
    assert_eq!(pushed, Err(2));
}

#[test]
fn leases_are_given_in_order() {
    let budget = Budget::new(100);
    let mut cx = Context::from_waker(Waker::noop());
    let held = budget.try_lease(60).unwrap();
    let mut large = Box::pin(budget.lease(80));
    assert!(large.as_mut().poll(&mut cx).is_pending());
    // There is room, but it is not its turn.
    assert!(budget.try_lease(10).is_none());
    let mut small = Box::pin(budget.lease(10));
    assert!(small.as_mut().poll(&mut cx).is_pending());
    drop(held);
    let Poll::Ready(large) = large.as_mut().poll(&mut cx) else { panic!("it fits now") };
    let Poll::Ready(small) = small.as_mut().poll(&mut cx) else { panic!("it fits beside it") };
    assert_eq!(budget.used(), large.bytes() + small.bytes());
    drop((large, small));
    assert_eq!((budget.used(), budget.waiting()), (0, 0));
}

#[test]
fn a_lease_nobody_waits_for_any_more_goes_back() {
    let budget = Budget::new(100);
    let mut cx = Context::from_waker(Waker::noop());
    let held = budget.try_lease(100).unwrap();
    let mut left_in_line = Box::pin(budget.lease(100));
    let mut left_when_granted = Box::pin(budget.lease(50));
    let mut stays = Box::pin(budget.lease(70));
    assert!(left_in_line.as_mut().poll(&mut cx).is_pending());
    assert!(left_when_granted.as_mut().poll(&mut cx).is_pending());
    assert!(stays.as_mut().poll(&mut cx).is_pending());
    drop(left_in_line);
    drop(held);
    assert_eq!(budget.used(), 50);
    drop(left_when_granted);
    assert_eq!(budget.used(), 70);
    assert!(stays.as_mut().poll(&mut cx).is_ready());
}

#[test]
fn a_request_beyond_the_limit_is_served_alone() {
    let budget = Budget::new(100);
    let mut cx = Context::from_waker(Waker::noop());
    let held = budget.try_lease(1).unwrap();
    let mut whale = Box::pin(budget.lease(1000));
    assert!(whale.as_mut().poll(&mut cx).is_pending());
    drop(held);
    let Poll::Ready(whale) = whale.as_mut().poll(&mut cx) else { panic!("nothing else is leased") };
    assert!(budget.try_lease(1).is_none());
    drop(whale);
    assert!(budget.try_lease(100).is_some());
}

#[test]
fn leases_shrink_and_merge() {
    let budget = Budget::new(100);
    let mut lease = budget.try_lease(60).unwrap();
    lease.shrink(40);
    assert_eq!(budget.used(), 40);
    lease.merge(budget.try_lease(10).unwrap());
    assert_eq!((lease.bytes(), budget.used()), (50, 50));
    drop(lease);
    assert_eq!(budget.used(), 0);
}

#[test]
fn one_value_or_the_news_that_none_will_come() {
    let (sender, receiver) = oneshot();
    assert_eq!(sender.send(7), Ok(()));
    assert_eq!(block_on(receiver), Ok(7));

    let (sender, receiver) = oneshot::<u8>();
    drop(sender);
    assert_eq!(block_on(receiver), Err(Closed));

    let (sender, receiver) = oneshot();
    drop(receiver);
    assert!(sender.is_closed());
    assert_eq!(sender.send("back"), Err("back"));
}

#[test]
fn the_left_of_a_race_wins_a_tie_and_the_loser_is_dropped() {
    let alive = Rc::new(());
    let held = Rc::clone(&alive);
    let right = async move {
        let _held = held;
        std::future::pending::<()>().await;
    };
    assert_eq!(block_on(race(async { 1 }, async { 2 })), Either::Left(1));
    assert_eq!(block_on(race(right, async { 3 })), Either::Right(3));
    assert_eq!(Rc::strong_count(&alive), 1);
    let mut pending = pin!(race(std::future::pending::<()>(), std::future::pending::<()>()));
    assert!(block_on(poll_once(&mut pending)).is_none());
}
