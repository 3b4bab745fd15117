//! The load cores of a run: they start together, end together, and hand in what they counted.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{anyhow, bail};
use runtime::local::Event;
use runtime::time::{Instant, now, sleep, sleep_until, within};
use runtime::{Config, Exit};

use crate::tally::{Detail, Live, Tally, Totals};

/// When a run counts. Both ends belong to every core alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first request is due.
    pub start: Instant,
    /// The warm-up is over.
    pub counted_from: Instant,
    /// No further request is due.
    pub end: Instant,
}

impl Window {
    /// One that counts nothing.
    pub fn never() -> Window {
        let beginning = Instant::from_nanos(0);
        Window { start: beginning, counted_from: beginning, end: beginning }
    }

    pub fn counts(self, at: Instant) -> bool {
        self.counted_from <= at && at < self.end
    }
}

/// How long a run lasts.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub warm_up: Duration,
    pub duration: Duration,
}

/// Where the cores of a run meet.
pub struct Stage {
    pub live: Arc<Live>,
    span: Span,
    detail: Detail,
    cores: usize,
    waiting: AtomicUsize,
    /// 0 until every core is there.
    start_nanos: AtomicU64,
    /// Cores whose senders have not finished.
    sending: AtomicUsize,
    handed_in: Mutex<Vec<Totals>>,
}

impl Stage {
    pub fn new(cores: usize, span: Span, detail: Detail) -> Arc<Stage> {
        let live = if detail.spans.is_some() { Live::with_spans() } else { Live::default() };
        Arc::new(Stage {
            live: Arc::new(live),
            span,
            detail,
            cores,
            waiting: AtomicUsize::new(0),
            start_nanos: AtomicU64::new(0),
            sending: AtomicUsize::new(cores),
            handed_in: Mutex::new(Vec::new()),
        })
    }

    /// Once every core was ready.
    pub fn window(&self) -> Option<Window> {
        let nanos = self.start_nanos.load(Ordering::SeqCst);
        let start = Instant::from_nanos(nanos);
        let counted_from = start + self.span.warm_up;
        let window = Window { start, counted_from, end: counted_from + self.span.duration };
        (nanos > 0).then_some(window)
    }

    /// Runs `main` on each of `cpus` and sums up what they counted.
    pub fn run<F, Fut>(self: &Arc<Self>, config: Config, main: F) -> anyhow::Result<Totals>
    where
        F: Fn(LoadCore) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = anyhow::Result<()>> + 'static,
    {
        let stage = Arc::clone(self);
        let exit = runtime::run(config, move |core: runtime::Core<()>| {
            let load = LoadCore::new(core.index, core.count, Arc::clone(&stage));
            let ended = main(load.clone());
            async move {
                match ended.await {
                    Ok(()) => {
                        load.hand_in();
                        Exit::Clean
                    }
                    Err(why) => Exit::Failed(format!("{why:#}")),
                }
            }
        });
        if let Exit::Failed(why) = exit {
            bail!(why);
        }
        let mut sum = Totals::new();
        let handed_in = self.handed_in.lock().unwrap_or_else(PoisonError::into_inner);
        handed_in.iter().for_each(|totals| sum.merge(totals));
        Ok(sum)
    }
}

/// Runs one future to its end on a core of its own.
pub fn run_once<R, F, Fut>(config: Config, main: F) -> anyhow::Result<R>
where
    R: Send + 'static,
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = anyhow::Result<R>> + 'static,
{
    let result: Arc<Mutex<Option<R>>> = Arc::default();
    let place = Arc::clone(&result);
    let exit = runtime::run(config, move |_core: runtime::Core<()>| {
        let outcome = main();
        let place = Arc::clone(&place);
        async move {
            match outcome.await {
                Ok(value) => {
                    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                    Exit::Clean
                }
                Err(why) => Exit::Failed(format!("{why:#}")),
            }
        }
    });
    if let Exit::Failed(why) = exit {
        bail!(why);
    }
    let value = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    value.ok_or_else(|| anyhow!("interrupted"))
}

/// One core of a run, as its tasks see it. Clones are the same.
#[derive(Clone)]
pub struct LoadCore {
    pub index: usize,
    pub count: usize,
    pub tally: Tally,
    stage: Arc<Stage>,
    inner: Rc<Inner>,
}

struct Inner {
    interrupted: Cell<bool>,
    interruption: Event,
}

impl LoadCore {
    fn new(index: usize, count: usize, stage: Arc<Stage>) -> LoadCore {
        let tally = Tally::new(Arc::clone(&stage.live), stage.detail);
        let inner = Inner { interrupted: Cell::new(false), interruption: Event::new() };
        LoadCore { index, count, tally, stage, inner: Rc::new(inner) }
    }

    /// Waits until every core is ready and the clock runs.
    pub async fn ready(&self) -> Window {
        let stage = &self.stage;
        if stage.waiting.fetch_add(1, Ordering::SeqCst) + 1 == stage.cores {
            let start = now() + LEAD;
            stage.start_nanos.store(start.as_nanos(), Ordering::SeqCst);
        }
        let core = self.clone();
        runtime::task::spawn(async move {
            runtime::shutdown_requested().await;
            core.inner.interrupted.set(true);
            core.inner.interruption.notify_all();
        });
        loop {
            if let Some(window) = stage.window() {
                self.tally.open(window);
                sleep_until(window.start).await;
                return window;
            }
            sleep(MEETING_PAUSE).await;
        }
    }

    /// Whether nothing new shall be sent.
    pub fn is_over(&self) -> bool {
        self.inner.interrupted.get() || now() >= self.tally.window().end
    }

    /// Whether somebody has asked this process to end.
    pub fn is_interrupted(&self) -> bool {
        self.inner.interrupted.get()
    }

    /// Waits for `future`, but not beyond `deadline` or an interruption.
    pub async fn wait(&self, deadline: Instant, future: impl Future<Output = ()>) {
        let interruption = self.inner.interruption.listen();
        if self.is_interrupted() {
            return;
        }
        let either = runtime::task::race(future, interruption);
        // Whatever it was, the caller looks at the state of things again.
        let _elapsed = within(deadline, either).await;
    }

    /// This core will send no more.
    pub fn sent_all(&self) {
        self.stage.sending.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether no core sends any more.
    pub fn all_sent(&self) -> bool {
        self.stage.sending.load(Ordering::SeqCst) == 0
    }

    fn hand_in(&self) {
        let totals = self.tally.totals();
        self.stage.handed_in.lock().unwrap_or_else(PoisonError::into_inner).push(totals);
    }
}

/// Tasks of one core that are waited for together.
#[derive(Clone, Default)]
pub struct Group {
    running: Rc<Cell<usize>>,
    finished: Event,
}

impl Group {
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let group = self.clone();
        group.running.set(group.running.get() + 1);
        runtime::task::spawn(async move {
            task.await;
            group.running.set(group.running.get() - 1);
            group.finished.notify_all();
        });
    }

    /// Waits until all of them have ended.
    pub async fn join(&self) {
        loop {
            let finished = self.finished.listen();
            if self.running.get() == 0 {
                return;
            }
            finished.await;
        }
    }
}

/// Between the last core's being ready and the first request.
const LEAD: Duration = Duration::from_millis(20);
const MEETING_PAUSE: Duration = Duration::from_millis(1);
