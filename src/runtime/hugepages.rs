//! The memory of large buffers: huge pages, one stretch of addresses for each core.
//!
//! A buffer that the disk reads or writes directly is pinned page by page for each request, and
//! the device is told of each page. Of a huge page that is one piece instead of 512. So what a
//! core allocates aligned to pages, if it is large, comes from here; all else is the system
//! allocator's. Both are reached through `Allocator`, which the program makes its global one,
//! because the executor allocates the buffers of its reads itself.
//!
//! A huge page in which nothing is allocated any more goes back to the kernel, but for a few.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use offset_allocator::Allocation;

use crate::buffer::ALIGNMENT;

/// The program's allocator: large buffers of cores from huge pages, all else from the system.
pub struct Allocator;

/// Smaller ones are the system allocator's.
const LARGE_BYTES: usize = 32 << 10;
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Free huge pages that a core keeps.
const KEPT: usize = 16;
/// A pool keeps book of one allocation for so many of its bytes; further ones are the system's.
const MEAN_BYTES: usize = 32 << 10;
/// More cores than that have no pool.
const CORES_MAX: usize = 256;

static STRETCHES: [Stretch; CORES_MAX] = [const { Stretch::new() }; CORES_MAX];
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The stretch of this thread's core.
    static OWN: Cell<Option<&'static Stretch>> = const { Cell::new(None) };
}

/// Addresses of one core.
struct Stretch {
    /// Null before there are any.
    start: AtomicPtr<u8>,
    len: AtomicUsize,
    /// Made when something is allocated for the first time.
    pool: Mutex<Option<Pool>>,
}

struct Pool {
    pages: offset_allocator::Allocator,
    /// What is allocated, by its first page.
    taken: HashMap<u32, Allocation>,
    /// Of each huge page, the pages that are taken.
    used: Vec<u16>,
    /// Whether the kernel has given memory to a huge page.
    resident: Vec<bool>,
    /// Huge pages that hold memory although nothing in them is taken.
    kept: usize,
}

/// Gives the calling thread, which runs a core, huge pages of up to `bytes` in all. Where the
/// kernel has none, everything stays with the system's allocator.
pub(crate) fn serve_this_core(bytes: usize) {
    if bytes == 0 {
        return;
    }
    let index = NEXT.fetch_add(1, Ordering::Relaxed);
    if let Some(stretch) = STRETCHES.get(index)
        && stretch.reserve(bytes.next_multiple_of(HUGE_PAGE_BYTES))
    {
        OWN.set(Some(stretch));
    }
}

impl Stretch {
    const fn new() -> Stretch {
        Stretch {
            start: AtomicPtr::new(ptr::null_mut()),
            len: AtomicUsize::new(0),
            pool: Mutex::new(None),
        }
    }

    fn reserve(&self, bytes: usize) -> bool {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let len = bytes + HUGE_PAGE_BYTES;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return false;
        }
        // SAFETY: the mapping is longer by as much as it is moved at most.
        let start = unsafe { start.add(start.cast::<u8>().align_offset(HUGE_PAGE_BYTES)) };
        // SAFETY: the new mapping, which nobody uses yet.
        if unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) } != 0 {
            // SAFETY: as above; what is not given back is but addresses.
            unsafe { libc::munmap(start, bytes) };
            return false;
        }
        self.len.store(bytes, Ordering::Relaxed);
        self.start.store(start.cast(), Ordering::Release);
        true
    }

    fn pool(&self) -> MutexGuard<'_, Option<Pool>> {
        self.pool.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The page that begins at `pointer`, if it is of these.
    fn page(&self, pointer: *mut u8) -> Option<u32> {
        let start = self.start.load(Ordering::Acquire).addr();
        let distance = pointer.addr().wrapping_sub(start);
        let ours = start != 0 && distance < self.len.load(Ordering::Relaxed);
        ours.then_some((distance / ALIGNMENT) as u32)
    }

    fn take(&self, bytes: usize) -> Option<*mut u8> {
        let mut pool = self.pool();
        let pool = pool.get_or_insert_with(|| Pool::new(self.len.load(Ordering::Relaxed)));
        let page = pool.take(bytes)?;
        // SAFETY: within the stretch.
        Some(unsafe { self.start.load(Ordering::Relaxed).add(page as usize * ALIGNMENT) })
    }

    fn give(&self, page: u32) {
        let mut pool = self.pool();
        let Some(pool) = pool.as_mut() else { return };
        pool.give(page, |huge| {
            // SAFETY: a huge page of this stretch in which nothing is allocated.
            unsafe {
                let start = self.start.load(Ordering::Relaxed).add(huge * HUGE_PAGE_BYTES);
                libc::madvise(start.cast(), HUGE_PAGE_BYTES, libc::MADV_DONTNEED);
            }
        });
    }
}

/// The stretch that `pointer` is of, and the page in it.
fn place(pointer: *mut u8) -> Option<(&'static Stretch, u32)> {
    let own = OWN.try_with(Cell::get).ok().flatten();
    let all = || STRETCHES[..NEXT.load(Ordering::Relaxed).min(CORES_MAX)].iter();
    own.into_iter().chain(all()).find_map(|stretch| Some((stretch, stretch.page(pointer)?)))
}

impl Pool {
    fn new(bytes: usize) -> Pool {
        let entries = (bytes / MEAN_BYTES).clamp(1 << 10, 1 << 20) as u32;
        let pages = u32::try_from(bytes / ALIGNMENT).unwrap_or(u32::MAX);
        Pool {
            pages: offset_allocator::Allocator::with_max_allocs(pages, entries),
            taken: HashMap::new(),
            used: vec![0; bytes / HUGE_PAGE_BYTES],
            kept: 0,
            resident: vec![false; bytes / HUGE_PAGE_BYTES],
        }
    }

    fn take(&mut self, bytes: usize) -> Option<u32> {
        let pages = u32::try_from(bytes.div_ceil(ALIGNMENT)).ok()?;
        let allocation = self.pages.allocate(pages)?;
        self.taken.insert(allocation.offset, allocation);
        self.each(allocation.offset, pages, |pool, huge, pages| {
            if pool.used[huge] == 0 && pool.resident[huge] {
                pool.kept -= 1;
            }
            pool.resident[huge] = true;
            pool.used[huge] += pages;
        });
        Some(allocation.offset)
    }

    /// Gives the huge pages that are to go back to `release`.
    fn give(&mut self, page: u32, mut release: impl FnMut(usize)) {
        let Some(allocation) = self.taken.remove(&page) else {
            return;
        };
        let pages = self.pages.allocation_size(allocation);
        self.pages.free(allocation);
        self.each(page, pages, |pool, huge, pages| {
            pool.used[huge] -= pages;
            if pool.used[huge] > 0 {
                return;
            }
            if pool.kept < KEPT {
                pool.kept += 1;
            } else {
                pool.resident[huge] = false;
                release(huge);
            }
        });
    }

    /// The huge pages that `pages` from `first` on lie in, and how many in each.
    fn each(&mut self, first: u32, pages: u32, mut visit: impl FnMut(&mut Pool, usize, u16)) {
        const PAGES: u32 = (HUGE_PAGE_BYTES / ALIGNMENT) as u32;
        let (mut at, end) = (first, first + pages);
        while at < end {
            let next = ((at / PAGES + 1) * PAGES).min(end);
            visit(self, (at / PAGES) as usize, (next - at) as u16);
            at = next;
        }
    }
}

// SAFETY: a pool hands out what lies within its stretch and is not taken; all else is the system
// allocator's, and which of the two memory is of shows in its address.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() == ALIGNMENT && layout.size() >= LARGE_BYTES {
            // A thread that is ending has no core any more.
            let own = OWN.try_with(Cell::get).ok().flatten();
            if let Some(start) = own.and_then(|own| own.take(layout.size())) {
                return start;
            }
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() < ALIGNMENT {
            // SAFETY: the caller keeps the contract of `alloc_zeroed`.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller keeps the contract; so many bytes were allocated.
        unsafe {
            let start = self.alloc(layout);
            if !start.is_null() {
                ptr::write_bytes(start, 0, layout.size());
            }
            start
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if layout.align() == ALIGNMENT
            && layout.size() >= LARGE_BYTES
            && let Some((stretch, page)) = place(pointer)
        {
            return stretch.give(page);
        }
        // SAFETY: the caller keeps the contract of `dealloc`, and it is the system's memory.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() < ALIGNMENT {
            // SAFETY: the caller keeps the contract of `realloc`, and it is the system's memory.
            return unsafe { System.realloc(pointer, layout, new_size) };
        }
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !new.is_null() {
                ptr::copy_nonoverlapping(pointer, new, layout.size().min(new_size));
                self.dealloc(pointer, layout);
            }
            new
        }
    }
}
