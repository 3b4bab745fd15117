//! The program's allocator: large buffers of a core come from huge pages and go back to them.

use std::alloc::{GlobalAlloc, Layout};

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use runtime::{Allocator, Config, Core, Exit};

use crate::process::{apart, finish};

const BYTES: usize = 64 << 20;

/// Memory of the allocator, filled with one value, given back when it is dropped.
struct Memory {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: whoever has it is its only owner.
unsafe impl Send for Memory {}

impl Memory {
    fn filled(size: usize, value: u8) -> Memory {
        let layout = Layout::from_size_align(size, 4096).unwrap();
        // SAFETY: the size is not zero.
        let start = unsafe { Allocator.alloc(layout) };
        assert!(!start.is_null() && start.addr().is_multiple_of(4096));
        // SAFETY: so many bytes are allocated.
        unsafe { std::ptr::write_bytes(start, value, size) };
        Memory { start, layout }
    }

    fn holds_only(&self, value: u8) -> bool {
        // SAFETY: so many bytes are allocated, and all have a value.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, self.layout.size()) };
        // Each is like the one before it: one comparison, quick without optimisation too.
        bytes[0] == value && bytes[1..] == bytes[..bytes.len() - 1]
    }

    fn is_of(&self, stretch: &Stretch) -> bool {
        (stretch.from..stretch.to).contains(&self.start.addr())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layout, and dropped once.
        unsafe { Allocator.dealloc(self.start, self.layout) };
    }
}

/// A mapping of this process that shall consist of huge pages.
struct Stretch {
    from: usize,
    to: usize,
    resident: usize,
}

/// Of the kernel's account of this process, the mappings with a flag for huge pages.
fn stretches() -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut current = Stretch { from: 0, to: 0, resident: 0 };
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let first = line.split(' ').next().unwrap();
        if let Some((from, to)) = first.split_once('-') {
            let address = |text| usize::from_str_radix(text, 16).unwrap();
            current = Stretch { from: address(from), to: address(to), resident: 0 };
        } else if first == "Rss:" {
            let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
            current.resident = kib << 10;
        } else if first == "VmFlags:" && line.split(' ').any(|flag| flag == "hg") {
            found.push(Stretch { ..current });
        }
    }
    found
}

fn stretch() -> Stretch {
    let mut found = stretches();
    assert_eq!(found.len(), 1, "one core has huge pages");
    found.remove(0)
}

/// Runs `test`, the same as the test of that name, on a core with huge pages of `BYTES`, in a
/// process of its own.
fn on_core(name: &str, test: fn()) {
    let name = format!("huge_pages::{name}");
    // Only the child gets beyond this.
    let ended = finish(apart_with(&name, test));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

fn apart_with(name: &str, test: fn()) -> std::process::Child {
    if std::env::var_os(crate::process::APART).is_some() {
        let mut config = Config::new(vec![0]);
        config.huge_pages = BYTES;
        let exit = runtime::run(config, move |_core: Core<()>| async move {
            test();
            Exit::Clean
        });
        assert_eq!(exit, Exit::Clean);
    }
    apart(name, || {})
}

#[test]
fn buffers_do_not_overlap() {
    on_core("buffers_do_not_overlap", || {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut held: Vec<(u8, Memory)> = Vec::new();
        let mut total = 0;
        for step in 0..20_000_u32 {
            let size = (1 + random.next_u32() as usize % 256) << 12;
            if total + size <= BYTES / 2 {
                held.push((step as u8, Memory::filled(size, step as u8)));
                total += size;
            } else {
                let at = random.next_u32() as usize % held.len();
                let (value, memory) = held.swap_remove(at);
                assert!(memory.holds_only(value), "step {step}");
                total -= memory.layout.size();
            }
        }
        assert!(held.iter().all(|(value, memory)| memory.holds_only(*value)));
        let stretch = stretch();
        for (_, memory) in &held {
            assert_eq!(memory.is_of(&stretch), memory.layout.size() >= 32 << 10);
        }
    });
}

#[test]
fn beyond_its_pages_a_core_has_the_systems_memory() {
    on_core("beyond_its_pages_a_core_has_the_systems_memory", || {
        let held: Vec<Memory> = (0..160).map(|at| Memory::filled(1 << 20, at)).collect();
        let stretch = stretch();
        let within = held.iter().filter(|memory| memory.is_of(&stretch)).count();
        assert_eq!(within, BYTES >> 20);
        assert!(held.iter().enumerate().all(|(at, memory)| memory.holds_only(at as u8)));
    });
}

#[test]
fn free_pages_go_back_to_the_kernel() {
    on_core("free_pages_go_back_to_the_kernel", || {
        let mut held: Vec<Memory> = (0..48).map(|_| Memory::filled(1 << 20, 1)).collect();
        assert!(stretch().resident >= 48 << 20);
        // Nothing leaves that shares its huge page with what stays.
        let stays = held.split_off(47);
        drop(held);
        assert!(stretch().resident <= 34 << 20, "{} resident", stretch().resident);
        assert!(stays[0].holds_only(1));
        let again: Vec<Memory> = (0..60).map(|at| Memory::filled(1 << 20, at)).collect();
        assert!(again.iter().enumerate().all(|(at, memory)| memory.holds_only(at as u8)));
    });
}

#[test]
fn memory_may_be_given_back_by_another_thread() {
    on_core("memory_may_be_given_back_by_another_thread", || {
        for round in 0..4 {
            let held: Vec<Memory> = (0..BYTES >> 20).map(|_| Memory::filled(1 << 20, 1)).collect();
            let stretch = stretch();
            assert!(held.iter().all(|memory| memory.is_of(&stretch)), "round {round}");
            std::thread::spawn(move || drop(held)).join().unwrap();
        }
    });
}
