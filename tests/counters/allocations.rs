//! A broker inside this process, whose allocator counts. The load comes from another process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use broker::config::Given;

use crate::load::{Load, directory, free_address};

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is handed to the system's allocator as it comes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

pub struct Counted {
    /// Allocations for each request.
    pub count: f64,
    /// Bytes allocated for each byte of records.
    pub per_byte: f64,
}

pub fn count(load: &Load) -> Counted {
    let (address, admin) = (free_address(), free_address());
    let given = Given {
        data_dir: Some(directory(&format!("inside-{}", load.name))),
        listen: Some(address.to_string()),
        cores: Some("0".to_owned()),
        admin_listen: Some(admin.to_string()),
        ..Given::default()
    };
    let config = given.resolve().unwrap();
    // It runs until this process ends: what it does without load is next to nothing.
    std::thread::spawn(move || broker::startup::serve(config).unwrap());
    load.prepare(address, admin);
    let before = (COUNT.load(Ordering::SeqCst), BYTES.load(Ordering::SeqCst));
    let moved = load.run(address);
    let count = COUNT.load(Ordering::SeqCst) - before.0;
    let bytes = BYTES.load(Ordering::SeqCst) - before.1;
    Counted { count: count as f64 / moved.requests, per_byte: bytes as f64 / moved.bytes }
}
