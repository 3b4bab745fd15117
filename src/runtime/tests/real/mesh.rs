//! Messages between cores.

use std::sync::{Arc, Mutex};

use runtime::mesh::{Closed, OneshotSender, oneshot};
use runtime::task::yield_now;
use runtime::{Config, Core, Exit};

const CORES: [usize; 3] = [0, 0, 0];

#[test]
fn order_holds_per_sender_under_back_pressure() {
    const MESSAGES: u32 = 10_000;
    let exit = runtime::run(Config::new(CORES.to_vec()), |core: Core<u32>| async move {
        let mesh = std::rc::Rc::new(core.mesh);
        let sender = std::rc::Rc::clone(&mesh);
        runtime::task::spawn(async move {
            for number in 0..MESSAGES {
                for to in 0..CORES.len() {
                    sender.send(to, number).await;
                }
            }
        });
        let mut next = [0; CORES.len()];
        while next.iter().any(|next| *next < MESSAGES) {
            let (from, number) = mesh.recv().await;
            assert_eq!(number, next[from]);
            next[from] += 1;
        }
        while mesh.sent() < u64::from(MESSAGES) * CORES.len() as u64 {
            yield_now().await;
        }
        Exit::Clean
    });
    assert_eq!(exit, Exit::Clean);
}

#[test]
fn a_full_lane_gives_the_message_back_and_blocks_no_other() {
    let exit = runtime::run(Config::new(vec![0, 0]), |core: Core<u32>| async move {
        if core.index == 1 {
            assert_eq!(core.mesh.recv().await, (0, 7));
            return Exit::Clean;
        }
        let mut accepted = 0;
        while core.mesh.try_send(0, accepted).is_ok() {
            accepted += 1;
        }
        assert!(accepted >= 1024);
        assert_eq!(core.mesh.try_send(0, 5), Err(5));
        core.mesh.send(1, 7).await;
        for expected in 0..accepted {
            assert_eq!(core.mesh.recv().await, (0, expected));
        }
        assert_eq!(core.mesh.try_send(0, 5), Ok(()));
        assert_eq!(core.mesh.sent(), u64::from(accepted) + 2);
        Exit::Clean
    });
    assert_eq!(exit, Exit::Clean);
}

#[test]
fn a_sleeping_core_wakes_for_a_message_and_for_an_answer() {
    type Question = (u64, OneshotSender<u64>);
    let exit = runtime::run(Config::new(vec![0, 0]), |core: Core<Option<Question>>| async move {
        if core.index == 1 {
            while let (_, Some((number, answer))) = core.mesh.recv().await {
                answer.send(number * 2).unwrap();
            }
            return Exit::Clean;
        }
        for number in 0..2000 {
            let (sender, receiver) = oneshot();
            core.mesh.send(1, Some((number, sender))).await;
            assert_eq!(receiver.await, Ok(number * 2));
        }
        core.mesh.send(1, None).await;
        Exit::Clean
    });
    assert_eq!(exit, Exit::Clean);
}

#[test]
fn an_answer_that_never_comes_is_known() {
    let exit = runtime::run(Config::new(vec![0, 0]), |core: Core<OneshotSender<()>>| async move {
        if core.index == 1 {
            drop(core.mesh.recv().await);
            return Exit::Clean;
        }
        let (sender, receiver) = oneshot();
        core.mesh.send(1, sender).await;
        assert_eq!(receiver.await, Err(Closed));
        Exit::Clean
    });
    assert_eq!(exit, Exit::Clean);
}

#[test]
fn a_plain_thread_can_wake_a_core() {
    let (sender, receiver) = oneshot();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let (ready, started) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        started.recv().unwrap();
        sender.send(42).unwrap();
    });
    let exit = runtime::run(Config::new(vec![0]), move |_core: Core<()>| {
        let receiver = receiver.lock().unwrap().take().unwrap();
        let ready = ready.clone();
        async move {
            ready.send(()).unwrap();
            assert_eq!(receiver.await, Ok(42));
            Exit::Clean
        }
    });
    assert_eq!(exit, Exit::Clean);
    thread.join().unwrap();
}
