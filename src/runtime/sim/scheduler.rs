//! The scheduler: which task of which core runs next.
//!
//! Law: a task is polled only when it was woken, one at a time; among the cores that have something
//! runnable the seed picks one, and within a core the oldest runnable task goes first, save that
//! the seed now and then prefers a younger one. Tasks of a process that has ended are never polled
//! again: their futures are dropped while the process is already marked dead.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Wake, Waker};

use super::process::{Aborted, Process};
use super::world::{Context, World, enter};

type TaskId = usize;
type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

/// Polls at one moment after which a task is taken for spinning without waiting.
const POLLS_WITHOUT_PROGRESS_MAX: u64 = 5_000_000;

/// The ids of woken tasks, in the order in which they were woken. A `Waker` must be `Send`, hence
/// the lock; it is never contended.
type Woken = Arc<Mutex<Vec<TaskId>>>;

struct TaskWake {
    id: TaskId,
    scheduled: AtomicBool,
    woken: Woken,
}

impl Wake for TaskWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.scheduled.swap(true, Ordering::Relaxed) {
            self.woken.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
        }
    }
}

struct Task {
    future: Option<TaskFuture>,
    process: Rc<Process>,
    core: usize,
    wake: Arc<TaskWake>,
    waker: Waker,
}

/// The runnable tasks of one core of one process.
struct CoreQueue {
    process: u64,
    core: usize,
    runnable: VecDeque<TaskId>,
}

pub(crate) struct Scheduler {
    woken: Woken,
    tasks: RefCell<Vec<Option<Task>>>,
    queues: RefCell<Vec<CoreQueue>>,
    last_poll_ns: Cell<u64>,
    polls_at_this_moment: Cell<u64>,
}

impl Scheduler {
    pub(crate) fn new() -> Self {
        Self {
            woken: Arc::new(Mutex::new(Vec::new())),
            tasks: RefCell::new(Vec::new()),
            queues: RefCell::new(Vec::new()),
            last_poll_ns: Cell::new(0),
            polls_at_this_moment: Cell::new(0),
        }
    }

    /// Makes the queues of a process that starts.
    pub(crate) fn add_process(&self, process: &Process) {
        let mut queues = self.queues.borrow_mut();
        for core in 0..process.cores {
            queues.push(CoreQueue { process: process.id, core, runnable: VecDeque::new() });
        }
    }

    pub(crate) fn spawn(&self, process: &Rc<Process>, core: usize, future: TaskFuture) {
        if process.core_ended(core) {
            return;
        }
        let mut tasks = self.tasks.borrow_mut();
        let wake = Arc::new(TaskWake {
            id: tasks.len(),
            scheduled: AtomicBool::new(false),
            woken: self.woken.clone(),
        });
        let waker = Waker::from(wake.clone());
        wake.wake_by_ref();
        let process = process.clone();
        tasks.push(Some(Task { future: Some(future), process, core, wake, waker }));
    }

    /// Drops every task of `process`, which must be marked dead, without running it further.
    pub(crate) fn drop_process(&self, world: &Rc<World>, process: &Rc<Process>) {
        assert!(!process.alive(), "tasks are dropped only after their process has ended");
        self.queues.borrow_mut().retain(|queue| queue.process != process.id);
        let count = self.tasks.borrow().len();
        for id in 0..count {
            let task = {
                let mut tasks = self.tasks.borrow_mut();
                match &tasks[id] {
                    Some(task) if Rc::ptr_eq(&task.process, process) => tasks[id].take(),
                    _ => None,
                }
            };
            let Some(task) = task else { continue };
            let context =
                Context { world: world.clone(), process: process.clone(), core: task.core };
            enter(&context, || drop(task));
        }
    }

    /// Drops the tasks of one core, whose executor has ended while its process lives on.
    fn drop_core(&self, context: &Context) {
        let Context { process, core, .. } = context;
        let count = self.tasks.borrow().len();
        for id in 0..count {
            let task = {
                let mut tasks = self.tasks.borrow_mut();
                match &tasks[id] {
                    Some(task) if Rc::ptr_eq(&task.process, process) && task.core == *core => {
                        tasks[id].take()
                    }
                    _ => None,
                }
            };
            enter(context, || drop(task));
        }
    }

    /// Polls one runnable task. False when there is none.
    pub(crate) fn poll_one(&self, world: &Rc<World>) -> bool {
        self.queue_woken();
        let Some(id) = self.pick(world) else { return false };
        self.guard_progress(world);
        let taken = {
            let mut tasks = self.tasks.borrow_mut();
            tasks[id].as_mut().and_then(|task| {
                task.wake.scheduled.store(false, Ordering::Relaxed);
                let future = task.future.take()?;
                Some((future, task.process.clone(), task.core, task.waker.clone()))
            })
        };
        let Some((future, process, core, waker)) = taken else { return true };
        world.record("poll", &[id as u64]);
        let context = Context { world: world.clone(), process: process.clone(), core };
        let left = enter(&context, || poll_future(future, &waker));
        match left {
            Some(future) if process.alive() => {
                if let Some(task) = self.tasks.borrow_mut()[id].as_mut() {
                    task.future = Some(future);
                }
            }
            left => {
                let task = self.tasks.borrow_mut()[id].take();
                enter(&context, || drop((left, task)));
            }
        }
        if !process.alive() {
            process.reap(world);
        } else if process.core_ended(core) {
            self.drop_core(&context);
        }
        true
    }

    fn queue_woken(&self) {
        let woken = std::mem::take(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner));
        if woken.is_empty() {
            return;
        }
        let tasks = self.tasks.borrow();
        let mut queues = self.queues.borrow_mut();
        for id in woken {
            let Some(task) = &tasks[id] else { continue };
            let queue = queues
                .iter_mut()
                .find(|queue| queue.process == task.process.id && queue.core == task.core);
            if let Some(queue) = queue {
                queue.runnable.push_back(id);
            }
        }
    }

    fn pick(&self, world: &World) -> Option<TaskId> {
        let mut queues = self.queues.borrow_mut();
        let busy = queues.iter().filter(|queue| !queue.runnable.is_empty()).count();
        let chosen = world.below(busy as u64) as usize;
        let queue = queues.iter_mut().filter(|queue| !queue.runnable.is_empty()).nth(chosen)?;
        let depth = queue.runnable.len();
        if depth > 1 && world.chance(world.options.reorder_permille) {
            return queue.runnable.remove(world.below(depth as u64) as usize);
        }
        queue.runnable.pop_front()
    }

    fn guard_progress(&self, world: &World) {
        if self.last_poll_ns.replace(world.now_ns()) != world.now_ns() {
            self.polls_at_this_moment.set(0);
        }
        let polls = self.polls_at_this_moment.get() + 1;
        assert!(polls < POLLS_WITHOUT_PROGRESS_MAX, "tasks spin without ever waiting");
        self.polls_at_this_moment.set(polls);
    }
}

/// Polls once; gives the future back while it is not done. An aborting process unwinds to here.
fn poll_future(mut future: TaskFuture, waker: &Waker) -> Option<TaskFuture> {
    let mut task = std::task::Context::from_waker(waker);
    match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut task))) {
        Ok(Poll::Pending) => Some(future),
        Ok(Poll::Ready(())) => None,
        Err(cause) if cause.is::<Aborted>() => None,
        Err(cause) => resume_unwind(cause),
    }
}
