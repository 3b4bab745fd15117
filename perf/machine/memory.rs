//! Copying and checking bytes on the broker's CPU.

use std::hint::black_box;
use std::time::Duration;

use runtime::time::now;

use super::{Finding, Place};
use crate::stage::run_once;

pub(super) fn measure(place: &Place) -> anyhow::Result<Vec<Finding>> {
    let seconds = place.seconds.min(BRIEFLY);
    run_once(place.broker(), move || async move {
        let mut found = Vec::new();
        for (name, bytes) in SIZES {
            let source = vec![7u8; *bytes];
            let mut target = vec![0u8; *bytes];
            let rate = repeat(seconds, *bytes, || {
                target.copy_from_slice(black_box(&source));
                black_box(&mut target);
            });
            found.push(Finding::new(format!("memcpy, {name}"), rate, "GB/s"));
        }
        let batch = vec![7u8; 16 << 10];
        let rate = repeat(seconds, batch.len(), || {
            black_box(protocol::batch::header::crc_of(black_box(&batch)));
        });
        found.push(Finding::new("CRC-32C, 16 KiB", rate, "GB/s"));
        Ok(found)
    })
}

/// GB/s of work that handles `bytes` at a time.
fn repeat(duration: Duration, bytes: usize, mut work: impl FnMut()) -> f64 {
    let begun = now();
    let mut rounds = 0u64;
    while now().since(begun) < duration {
        for _ in 0..BETWEEN_LOOKS {
            work();
        }
        rounds += BETWEEN_LOOKS;
    }
    rounds as f64 * bytes as f64 / now().since(begun).as_secs_f64() / 1e9
}

const SIZES: &[(&str, usize)] = &[("16 KiB", 16 << 10), ("1 MiB", 1 << 20), ("64 MiB", 64 << 20)];
const BETWEEN_LOOKS: u64 = 4;
/// Longer than the watchdog's patience it must not take, and longer is no use.
const BRIEFLY: Duration = Duration::from_millis(500);
