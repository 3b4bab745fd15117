//! The life of one slot: start, serve, drain, close.
//!
//! Slot 0 opens the host (lock, identity, metadata log) and tells the others who they are; every
//! slot then opens its partitions and only after that its listener, so that a port answers only
//! when requests can be served. Stopping goes the other way round: listeners, connections, logs,
//! and at last the metadata log and the mark of a clean stop.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use metadata::{Image, Topic};
use protocol::{SlotIndex, Uuid};
use runtime::local::Budget;
use runtime::mesh::OneshotSender;
use runtime::net::Listener;
use runtime::{Core, Exit, task, time};
use storage::{Storage, StorageConfig};

use crate::admin::Admin;
use crate::controller::{CONTROLLER_SLOT, Controller, MetadataLog};
use crate::host::{Host, Identity};
use crate::monitor;
use crate::shard::{LetGo, clear_strays};
use crate::slot::links::{Links, Message};
use crate::slot::{Slot, listener};
use crate::startup::{HostDirectory, StartError, open_host};

/// Runs slot `core.index` of the host until the process is asked to stop.
pub async fn run(core: Core<Message>, host: Arc<Host>) -> Exit {
    let index = SlotIndex(core.index as u16);
    let links = Links::new(core.mesh);
    let result = match index {
        CONTROLLER_SLOT => lead(links, host).await,
        _ => follow(index, links, host).await,
    };
    match result {
        Ok(()) => Exit::Clean,
        Err(why) => Exit::Failed(why.to_string()),
    }
}

/// Slot 0: the host's own affairs besides its shard.
async fn lead(links: Links, host: Arc<Host>) -> Result<(), StartError> {
    let started = time::now();
    let (directory, log) = open_host(&host).await?;
    let admin = open_admin(&host)?;
    let identity = Arc::new(directory.identity.clone());
    let mut storage = StorageConfig::new(host.data_dir.clone(), Budget::new(STRAYS_MEMORY_BYTES));
    // Nothing else of the slot needs its memory yet.
    storage.replay_bytes_max = host.tuning(CONTROLLER_SLOT).memory as usize / REPLAY_SHARES;
    let storage = Storage::new(storage);
    clear_strays(&storage, &log.image(), host.id).await?;
    if !identity.clean {
        replay_journals(&storage, &log.image()).await?;
    }
    for other in host.slot_indexes().filter(|&other| other != CONTROLLER_SLOT) {
        links.send(other, Message::Start(identity.clone(), log.image())).await;
    }
    let slot = Slot::open(CONTROLLER_SLOT, host.clone(), identity, links, log.image()).await?;
    let clients = bind(&slot)?;
    let controller = Rc::new(Controller::default());
    let done = Rc::new(runtime::local::Queue::bounded(1));
    task::spawn(keep_controller(controller.clone(), slot.clone(), log, done.clone()));
    task::spawn(messages(slot.clone(), Some(controller.clone())));
    slot.others_ready.wait_for(usize::from(host.slots) - 1).await;
    admin.on_ready(&slot);
    ready_line(&host, time::now().since(started));
    serve(&slot, clients).await;
    controller.close();
    let log = done.pop().await;
    slot.others_stopped.wait_for(usize::from(host.slots) - 1).await;
    if let Some(log) = log {
        close_host(directory, log).await;
    }
    admin.end();
    Ok(())
}

fn open_admin(host: &Host) -> Result<Rc<Admin>, StartError> {
    let admin = Rc::new(Admin::default());
    let listener = host.admin_listen.map(Listener::bind).transpose();
    let listener = listener.map_err(|why| StartError::port(host.admin_listen, why))?;
    if let Some(listener) = listener {
        task::spawn(admin.clone().serve(listener));
    }
    Ok(admin)
}

/// Brings into the segments what only the journals have. No slot has opened a log yet.
async fn replay_journals(storage: &Storage, image: &Image) -> Result<(), StartError> {
    let owner = |topic: &Arc<Topic>, index| ((topic.name.to_string(), index), topic.id);
    let topics = image.topics();
    let owners = topics.flat_map(|topic| topic.indexed().map(move |(it, _)| owner(topic, it)));
    let replayed = storage.replay_journals(owners.collect()).await?;
    for damage in &replayed.damaged {
        tracing::error!("{damage}");
    }
    for (log, why) in &replayed.offline {
        tracing::error!(log, why, "the journal's batches are missing; the partition is offline");
    }
    let (logs, bytes, dropped) = (replayed.logs, replayed.bytes, replayed.dropped);
    if logs > 0 || dropped > 0 {
        tracing::info!(logs, bytes, dropped, "brought the journals' batches into their segments");
    }
    Ok(())
}

async fn keep_controller(
    controller: Rc<Controller>,
    slot: Rc<Slot>,
    log: MetadataLog,
    done: Rc<runtime::local::Queue<MetadataLog>>,
) {
    let log = controller.run(slot, log).await;
    // The queue has room for the one log there is.
    let _ = done.try_push(log);
}

async fn close_host(directory: HostDirectory, log: MetadataLog) {
    log.close().await;
    directory.mark_clean_stop().await;
}

/// Every other slot: its shard only.
async fn follow(index: SlotIndex, links: Links, host: Arc<Host>) -> Result<(), StartError> {
    let Some((identity, image)) = wait_for_start(&links).await else {
        // Slot 0 may be past the point at which it could leave without hearing of this slot.
        links.send(CONTROLLER_SLOT, Message::Ready).await;
        links.send(CONTROLLER_SLOT, Message::Stopped).await;
        return Ok(());
    };
    let slot = Slot::open(index, host, identity, links, image).await?;
    let clients = bind(&slot)?;
    task::spawn(messages(slot.clone(), None));
    slot.links.send(CONTROLLER_SLOT, Message::Ready).await;
    serve(&slot, clients).await;
    slot.links.send(CONTROLLER_SLOT, Message::Stopped).await;
    Ok(())
}

async fn wait_for_start(links: &Links) -> Option<(Arc<Identity>, Arc<Image>)> {
    loop {
        match task::race(links.receive(), runtime::shutdown_requested()).await {
            task::Either::Left((_, Message::Start(identity, image))) => {
                return Some((identity, image));
            }
            task::Either::Left(_) => {}
            task::Either::Right(()) => return None,
        }
    }
}

fn bind(slot: &Slot) -> Result<Listener, StartError> {
    let address = slot.host.listen_of(slot.index);
    Listener::bind(address).map_err(|why| StartError::port(Some(address), why))
}

/// Serves clients until the process is asked to stop, then drains and closes the logs.
async fn serve(slot: &Rc<Slot>, clients: Listener) {
    task::spawn(listener::close_idle(slot.clone()));
    task::spawn(crate::shard::keep_house(slot.clone()));
    task::spawn(crate::shard::keep_clean(slot.clone()));
    task::spawn(monitor::keep_pulse(slot.clone()));
    listener::run(slot.clone(), clients).await;
    slot.stopping.set();
    let deadline = time::now() + DRAIN_TIME;
    if time::within(deadline, slot.connections.all_gone()).await.is_err() {
        tracing::warn!(core = slot.index.0, "clients did not finish in time; closing them");
        slot.connections.close_all();
        let deadline = time::now() + DRAIN_TIME;
        let _ = time::within(deadline, slot.connections.all_gone()).await;
    }
    slot.groups.close();
    slot.shard.close().await;
    slot.storage.close_journal().await;
}

/// Acts on what other slots say, in order.
async fn messages(slot: Rc<Slot>, controller: Option<Rc<Controller>>) {
    loop {
        let (_, message) = slot.links.receive().await;
        match message {
            Message::Publish(image, applied) => apply(&slot, image, applied).await,
            Message::LetGo(leaving, gone) => {
                // The logs take their time; the controller asks for nothing else meanwhile.
                task::spawn(let_go(slot.clone(), leaving, gone));
            }
            Message::Expect(coming) => slot.shard.expect(coming),
            Message::Monitor(question) => monitor::answer(&slot, question),
            Message::Controller(job) => {
                if let Some(controller) = &controller {
                    controller.take(job).await;
                }
            }
            Message::Ready => slot.others_ready.add(),
            Message::Stopped => slot.others_stopped.add(),
            Message::Start(..) => unreachable!("a slot is started once"),
        }
    }
}

async fn apply(slot: &Rc<Slot>, image: Arc<Image>, applied: OneshotSender<()>) {
    slot.apply(image).await;
    // The controller may have stopped waiting.
    let _ = applied.send(());
}

async fn let_go(slot: Rc<Slot>, leaving: Vec<(Uuid, i32)>, gone: OneshotSender<LetGo>) {
    let let_go = slot.let_go(&leaving).await;
    // The controller may have stopped waiting.
    let _ = gone.send(let_go);
}

fn ready_line(host: &Host, took: Duration) {
    let last = host.listen_of(SlotIndex(host.slots - 1));
    let nodes = match host.slots {
        1 => format!("node {} on {}", host.node(SlotIndex(0)), host.listen),
        _ => format!(
            "nodes {}-{} on {} to {}",
            host.node(SlotIndex(0)),
            host.node(SlotIndex(host.slots - 1)),
            host.listen,
            last
        ),
    };
    println!("coretide: ready in {} ms, {nodes}", took.as_millis());
}

/// Of a slot's memory one share is for what a replay of the journals has in memory at a time; the
/// writes that bring it in take some more.
const REPLAY_SHARES: usize = 2;
/// Moving directories needs hardly any.
const STRAYS_MEMORY_BYTES: usize = 8 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(5);
