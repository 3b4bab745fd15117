//! Opening a log whose files were damaged, on a simulated disk. Needs `--cfg sim`.
#![no_main]

use std::time::Duration;

use runtime::sim::{Options, Simulation};
use runtime::{Config, Exit};

#[path = "../bodies/recovery.rs"]
mod recovery;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let simulation = Simulation::new(1, Options::default());
    let host = simulation.add_host("fuzzed");
    let input = input.to_vec();
    simulation.start::<(), _, _>(&host, Config::new(vec![0]), move |_core| {
        let input = input.clone();
        async move {
            recovery::run("/data".into(), input).await;
            Exit::Clean
        }
    });
    let ended = |simulation: &Simulation| simulation.exited(&host).is_some();
    assert!(simulation.run_until(ended, Duration::from_secs(60)), "recovery does not end");
    assert_eq!(simulation.exited(&host), Some(Exit::Clean));
});
