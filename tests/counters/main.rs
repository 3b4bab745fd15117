//! What a message costs, counted instead of timed: system calls, allocations, allocated bytes and
//! copied bytes of the broker under five standard loads. A regression is caught without a clock, on
//! any machine.
//!
//! Copies are counted where they are made: into aligned buffers, when a frame outgrows its buffer,
//! in compaction. What is copied without being counted there needs somewhere to go, which the
//! allocated bytes show. (Aligned buffers are memory of the runtime's own and not in those.) That
//! no message between cores belongs to a record is asserted where behaviours are.
//!
//! Limits are about half again what was counted when they were written: batching differs a little
//! from run to run. Lower them when a change makes messages cheaper.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall fail there")]

mod allocations;
mod load;
mod system_calls;

use load::{Limits, Load};
use system_calls::Traced;

/// One after the other, in one test: what is counted belongs to the whole process.
#[test]
fn messages_cost_what_they_may() {
    let mut findings = Vec::new();
    for load in LOADS {
        let memory = allocations::count(load);
        let Traced { calls, copies } = system_calls::count(load);
        let (allocations, bytes_per_byte) = (memory.count, memory.per_byte);
        let counted = Limits { calls, allocations, bytes_per_byte, copies };
        println!("{:<8} {counted:?}", load.name);
        findings.extend(load.limits.exceeded_by(&counted).map(|it| format!("{}: {it}", load.name)));
    }
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

/// As the rows of perf/compare; a message is a request.
const LOADS: &[Load] = &[
    Load {
        name: "large",
        partitions: 8,
        journaled: false,
        arguments: "produce --connections 8 --batch-bytes 64KiB",
        requests: 2_000,
        records_per_request: 62,
        limits: Limits { calls: 4.0, allocations: 30.0, bytes_per_byte: 5.0, copies: 1.5 },
    },
    Load {
        name: "small",
        partitions: 64,
        journaled: true,
        arguments: "produce --connections 64 --records-per-batch 1",
        requests: 20_000,
        records_per_request: 1,
        limits: Limits { calls: 2.0, allocations: 24.0, bytes_per_byte: 18.0, copies: 3.3 },
    },
    Load {
        name: "hundred",
        partitions: 16,
        journaled: false,
        arguments: "produce --connections 16 --batch-bytes 16KiB --record-size 100",
        requests: 4_000,
        records_per_request: 151,
        limits: Limits { calls: 3.5, allocations: 30.0, bytes_per_byte: 6.0, copies: 1.7 },
    },
    Load {
        name: "single",
        partitions: 1,
        journaled: true,
        arguments: "produce --connections 1 --in-flight 1 --records-per-batch 1",
        requests: 1_000,
        records_per_request: 1,
        limits: Limits { calls: 35.0, allocations: 90.0, bytes_per_byte: 50.0, copies: 3.3 },
    },
    Load {
        name: "fetch",
        partitions: 8,
        journaled: false,
        arguments: "consume --connections 8 --repeat --partition-bytes 64KiB",
        requests: 2_000,
        records_per_request: 62,
        limits: Limits { calls: 4.5, allocations: 36.0, bytes_per_byte: 0.55, copies: 0.1 },
    },
];
