//! Points of the code that the hosts passed, and the crashes that wait at them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::process::Ending;

struct Ambush {
    host: u64,
    point: String,
    /// Passes that are still let through.
    after: u32,
    ending: Ending,
}

#[derive(Default)]
pub(crate) struct Points {
    counts: RefCell<BTreeMap<&'static str, u64>>,
    ambushes: RefCell<Vec<Ambush>>,
}

impl Points {
    /// Counts a pass; says how the process ends if it ends here.
    pub(crate) fn reach(&self, host: u64, point: &'static str) -> Option<Ending> {
        *self.counts.borrow_mut().entry(point).or_insert(0) += 1;
        let mut ambushes = self.ambushes.borrow_mut();
        let hit = ambushes.iter_mut().position(|ambush| {
            let matches = ambush.host == host && ambush.point == point;
            let due = matches && ambush.after == 0;
            ambush.after -= u32::from(matches && !due);
            due
        })?;
        Some(ambushes.remove(hit).ending)
    }

    pub(crate) fn ambush(&self, host: u64, point: &str, after: u32, ending: Ending) {
        let point = point.to_owned();
        self.ambushes.borrow_mut().push(Ambush { host, point, after, ending });
    }

    pub(crate) fn call_off(&self, host: u64) {
        self.ambushes.borrow_mut().retain(|ambush| ambush.host != host);
    }

    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.borrow().clone()
    }
}
