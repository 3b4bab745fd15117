//! What a slot counts with. Single-threaded by type: these cells are not `Sync`, so that no
//! counter can ever be shared between cores by accident.

use std::cell::{Cell, RefCell};

use hdrhistogram::Histogram as Hdr;

/// A monotonically growing count.
#[derive(Debug, Default)]
pub struct Counter(Cell<u64>);

impl Counter {
    pub fn add(&self, n: u64) {
        self.0.set(self.0.get().wrapping_add(n));
    }

    pub fn increment(&self) {
        self.add(1);
    }

    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// Durations in nanoseconds between 1 µs and 60 s with two significant digits; values outside are
/// counted at the nearest end. Takes about 20 KiB once the first value is recorded, nothing before.
#[derive(Debug, Default)]
pub struct Histogram {
    hdr: RefCell<Option<Hdr<u64>>>,
    sum_nanos: Cell<u64>,
}

impl Histogram {
    pub fn record_nanos(&self, nanos: u64) {
        let mut slot = self.hdr.borrow_mut();
        let hdr = slot.get_or_insert_with(new_hdr);
        hdr.saturating_record(nanos.max(LOWEST_NANOS));
        self.sum_nanos.set(self.sum_nanos.get().wrapping_add(nanos));
    }

    pub fn count(&self) -> u64 {
        self.hdr.borrow().as_ref().map_or(0, Hdr::len)
    }

    pub fn sum_nanos(&self) -> u64 {
        self.sum_nanos.get()
    }

    /// The smallest recorded duration that `quantile` (0 to 1) of all values do not exceed, in ns.
    pub fn quantile_nanos(&self, quantile: f64) -> u64 {
        self.hdr.borrow().as_ref().map_or(0, |hdr| hdr.value_at_quantile(quantile))
    }

    /// Cumulative counts at [`BUCKETS_NANOS`], as Prometheus wants them; one pass over what was
    /// recorded.
    pub fn cumulative(&self) -> Vec<u64> {
        let mut counts = vec![0; BUCKETS_NANOS.len()];
        if let Some(hdr) = self.hdr.borrow().as_ref() {
            for step in hdr.iter_recorded() {
                let value = hdr.lowest_equivalent(step.value_iterated_to());
                let bucket = BUCKETS_NANOS.partition_point(|&upper| upper < value);
                if let Some(count) = counts.get_mut(bucket) {
                    *count += step.count_at_value();
                }
            }
        }
        let mut below = 0;
        counts.iter_mut().for_each(|count| {
            below += *count;
            *count = below;
        });
        counts
    }
}

fn new_hdr() -> Hdr<u64> {
    match Hdr::new_with_bounds(LOWEST_NANOS, HIGHEST_NANOS, 2) {
        Ok(hdr) => hdr,
        Err(why) => unreachable!("constant histogram bounds are valid: {why:?}"),
    }
}

const LOWEST_NANOS: u64 = 1_000;
const HIGHEST_NANOS: u64 = 60_000_000_000;

/// Upper bounds of the exported buckets, in nanoseconds.
pub(crate) const BUCKETS_NANOS: [u64; 18] = [
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
];
