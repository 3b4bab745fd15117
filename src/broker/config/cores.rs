//! Which CPUs the slots run on: `all`, or a list such as `0,1,4-7`.

use std::fmt;
use std::str::FromStr;

use crate::config::ConfigError;

/// The CPUs to use, in slot order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoreList {
    /// Every CPU this process may run on.
    All,
    These(Vec<usize>),
}

impl CoreList {
    /// The CPUs in slot order. Fails when one of them is not there or given twice.
    pub fn cpus(&self, available: &[usize]) -> Result<Vec<usize>, ConfigError> {
        let wanted = match self {
            CoreList::All => return Ok(available.iter().copied().take(SLOTS_MAX).collect()),
            CoreList::These(cpus) => cpus,
        };
        if let Some(missing) = wanted.iter().find(|cpu| !available.contains(cpu)) {
            return Err(ConfigError(format!(
                "cores: CPU {missing} is not available to this process; it may use {}",
                CoreList::These(available.to_vec())
            )));
        }
        let mut sorted = wanted.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ConfigError(format!("cores: CPU {} is listed twice", pair[0])));
        }
        Ok(wanted.clone())
    }
}

impl FromStr for CoreList {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<CoreList, ConfigError> {
        if text == "all" {
            return Ok(CoreList::All);
        }
        let wrong = || ConfigError(format!("cores '{text}': write all, or a list like 0,1,4-7"));
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.trim().parse().map_err(|_| wrong())?;
            let last: usize = last.trim().parse().map_err(|_| wrong())?;
            if last < first || last - first >= SLOTS_MAX {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        if cpus.is_empty() || cpus.len() > SLOTS_MAX {
            return Err(wrong());
        }
        Ok(CoreList::These(cpus))
    }
}

impl fmt::Display for CoreList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoreList::All => f.write_str("all"),
            CoreList::These(cpus) => {
                let words: Vec<String> = cpus.iter().map(usize::to_string).collect();
                f.write_str(&words.join(","))
            }
        }
    }
}

/// The CPUs that this process may run on, ascending.
pub fn available_cpus() -> Result<Vec<usize>, ConfigError> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))
        .map_err(|why| ConfigError(format!("cannot read the CPU affinity: {why}")))?;
    Ok((0..nix::sched::CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

/// Slots of one host: node ids are host id × 1000 + slot.
const SLOTS_MAX: usize = 1000;
