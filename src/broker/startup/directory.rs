//! The data directory as a whole: its lock, its identity, and the mark of a clean stop.
//!
//! `coretide.identity` says whose directory this is and never changes but for the number of slots:
//! one `key=value` per line, written atomically. `clean-stop` holds the incarnation that stopped
//! in order; it is taken away, durably, before the next incarnation touches anything.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use metadata::controller as decisions;
use metadata::controller::{HostFacts, HostStart, RandomIds};
use metadata::record::PreviousStop;
use protocol::{HostId, SlotIndex, Str, Uuid};
use runtime::fs::{self, FsError, LockGuard};
use runtime::net::Listener;
use runtime::time;

use crate::controller::{self, MetadataLog};
use crate::host::{Host, Identity};
use crate::startup::{StartError, report};

/// The open data directory of this host; locked as long as it lives.
pub struct HostDirectory {
    pub identity: Identity,
    path: PathBuf,
    _lock: LockGuard,
}

/// What the identity file holds.
struct IdentityFile {
    /// None until the cluster is formatted.
    cluster_id: Option<Str>,
    host_id: HostId,
    directory_id: Uuid,
    slots: u16,
}

impl HostDirectory {
    /// Leaves the mark that lets the next start trust every log as it lies.
    pub async fn mark_clean_stop(&self) {
        let text = format!("{}\n", self.identity.incarnation);
        if let Err(why) = fs::write_atomic(&self.path.join(CLEAN_STOP), text.as_bytes()).await {
            tracing::warn!(%why, "cannot mark the clean stop; the next start recovers the logs");
        }
    }
}

/// Takes the directory, checks that it is ours, opens the metadata log and starts a new
/// incarnation of this host.
pub async fn open_host(host: &Host) -> Result<(HostDirectory, MetadataLog), StartError> {
    probe_ports(host).await?;
    make_durably(&host.data_dir).await?;
    let lock = fs::lock(&host.data_dir.join(LOCK)).await.map_err(|why| {
        let what = "stop that process or give another --data-dir";
        foreign(host, format!("is in use ({}); {what}", why.source))
    })?;
    let file = take_identity(host).await?;
    let info = fs::info(&host.data_dir).await?;
    let mut log = MetadataLog::open(&host.data_dir, host.id).await?;
    let image = log.image();
    if let (Some(ours), Some(theirs)) = (&file.cluster_id, image.cluster_id())
        && ours != theirs
    {
        let what = format!("belongs to cluster {ours}, its metadata to cluster {theirs}");
        return Err(foreign(host, what));
    }
    let clean_stop = take_clean_stop(&host.data_dir).await?;
    runtime::reached("start: mark of a clean stop taken");
    let last = image.host(host.id).map_or(0, |host| host.incarnation);
    let previous_stop = match clean_stop {
        Some(incarnation) if incarnation == last => PreviousStop::Clean,
        None if last == 0 => PreviousStop::Clean,
        _ => PreviousStop::Unclean,
    };
    let start = start(host, &file, &mut log, previous_stop).await?;
    runtime::reached("start: committed");
    store_identity(host, &IdentityFile { cluster_id: Some(start.cluster_id.clone()), ..file })
        .await?;
    runtime::reached("start: identity stored");
    let identity = Identity {
        cluster_id: start.cluster_id,
        directory_id: file.directory_id,
        incarnation: start.incarnation,
        clean: previous_stop == PreviousStop::Clean,
        direct_io: info.direct_io,
    };
    report::print_disk(&info, identity.clean);
    report::print_outranked(host, &log.image());
    report::print_empty_slots(host, &log.image());
    Ok((HostDirectory { identity, path: host.data_dir.clone(), _lock: lock }, log))
}

/// Makes a directory whose own name survives a power loss, and with it all that is put inside.
/// What is there already may be from a start that was cut short, so its name is synced again.
async fn make_durably(dir: &Path) -> Result<(), FsError> {
    let mut missing = Vec::new();
    for above in dir.ancestors().filter(|above| !above.as_os_str().is_empty()) {
        if fs::exists(above).await? {
            break;
        }
        missing.push(above);
    }
    fs::create_dir_all(dir).await?;
    let made = missing.into_iter().skip(1).map(parent_of);
    for parent in std::iter::once(parent_of(dir)).chain(made) {
        match fs::sync_dir(parent).await {
            // One may be let through a directory and not be let read it; then it was not made here.
            Err(why) if why.kind() == std::io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Commits that this host starts.
async fn start(
    host: &Host,
    file: &IdentityFile,
    log: &mut MetadataLog,
    previous_stop: PreviousStop,
) -> Result<HostStart, StartError> {
    let facts = HostFacts {
        host: host.id,
        directory: file.directory_id,
        advertised_host: Str::from(host.advertised_host.clone()),
        client_port: host.advertised_port,
        slots: host.slots,
        rack: host.rack.clone(),
        previous_stop,
    };
    let image = log.image();
    let context =
        decisions::Context { image: &image, statics: &host.statics, random: controller::random() };
    let decision = decisions::start_host(&context, &facts)?;
    log.commit(decision.records).await;
    Ok(decision.response)
}

fn foreign(host: &Host, what: String) -> StartError {
    StartError::Directory { path: host.data_dir.display().to_string(), what }
}

/// Finds a taken port before anything on disk is touched.
///
/// A process that was killed is gone before the kernel has ended its rings, and until then they
/// hold its listeners: whoever starts it again at once would find its own port taken.
async fn probe_ports(host: &Host) -> Result<(), StartError> {
    let clients = host.slot_indexes().map(|slot: SlotIndex| host.listen_of(slot));
    let deadline = time::now() + PREDECESSOR_WAIT;
    for address in clients.chain(host.admin_listen) {
        loop {
            match Listener::bind(address) {
                Ok(_free) => break,
                Err(why) if why.kind() == ErrorKind::AddrInUse && time::now() < deadline => {
                    time::sleep(PREDECESSOR_POLL).await;
                }
                Err(why) => return Err(StartError::port(Some(address), why)),
            }
        }
    }
    Ok(())
}

async fn take_identity(host: &Host) -> Result<IdentityFile, StartError> {
    let path = host.data_dir.join(IDENTITY);
    if !fs::exists(&path).await? {
        refuse_foreign(&host.data_dir).await?;
        let directory_id = RandomIds::new(controller::random()).next_id();
        let (cluster_id, slots) = (None, host.slots);
        let file = IdentityFile { cluster_id, host_id: host.id, directory_id, slots };
        store_identity(host, &file).await?;
        return Ok(file);
    }
    let bytes = fs::read(&path).await?;
    let found = parse_identity(&String::from_utf8_lossy(&bytes));
    let file =
        found.map_err(|why| foreign(host, format!("has an unreadable {IDENTITY}: {why}")))?;
    if file.host_id != host.id {
        let what = format!(
            "belongs to host {}, not to host {}; give its own --host-id or another --data-dir",
            file.host_id, host.id
        );
        return Err(foreign(host, what));
    }
    Ok(IdentityFile { slots: file.slots.max(host.slots), ..file })
}

async fn store_identity(host: &Host, file: &IdentityFile) -> Result<(), StartError> {
    let path = host.data_dir.join(IDENTITY);
    let text = identity_text(file);
    // A start changes nothing as a rule, and may find no room for a change.
    if fs::exists(&path).await? && fs::read(&path).await? == text.as_bytes() {
        return Ok(());
    }
    Ok(fs::write_atomic(&path, text.as_bytes()).await?)
}

/// A directory without our identity must be empty: it may be somebody else's.
async fn refuse_foreign(path: &Path) -> Result<(), StartError> {
    // A first start that was cut short leaves the beginning of an identity.
    let unfinished = format!("{IDENTITY}.tmp");
    let ours = [LOCK, "lost+found", &unfinished];
    let entries = fs::list(path).await?;
    match entries.iter().find(|entry| !ours.contains(&entry.name.as_str())) {
        None => Ok(()),
        Some(entry) => Err(StartError::Directory {
            path: path.display().to_string(),
            what: format!(
                "has no {IDENTITY} but is not empty (it holds {}); choose an empty directory",
                entry.name
            ),
        }),
    }
}

fn identity_text(file: &IdentityFile) -> String {
    let cluster = file.cluster_id.as_ref().map(|id| format!("cluster.id={id}\n"));
    format!(
        "# Written by coretide. Do not edit.\nformat={FORMAT}\n{}host.id={}\ndirectory.id={}\n\
         slots={}\n",
        cluster.unwrap_or_default(),
        file.host_id,
        file.directory_id,
        file.slots
    )
}

fn parse_identity(text: &str) -> Result<IdentityFile, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let values: BTreeMap<&str, &str> = lines.filter_map(|line| line.split_once('=')).collect();
    let get = |key: &str| values.get(key).copied().ok_or(format!("{key} is missing"));
    let number = |key: &str| -> Result<i32, String> {
        get(key)?.parse().map_err(|_| format!("{key} is no number"))
    };
    if number("format")? != FORMAT {
        return Err(format!("its format is {}, this release knows {FORMAT}", get("format")?));
    }
    let slots = u16::try_from(number("slots")?).map_err(|_| "slots is out of range".to_owned())?;
    Ok(IdentityFile {
        cluster_id: values.get("cluster.id").map(|id| Str::from((*id).to_owned())),
        host_id: HostId(number("host.id")?),
        directory_id: get("directory.id")?
            .parse()
            .map_err(|_| "directory.id is no id".to_owned())?,
        slots,
    })
}

/// The incarnation that left the mark of a clean stop, which is then gone for good.
async fn take_clean_stop(path: &Path) -> Result<Option<i64>, StartError> {
    let mark = path.join(CLEAN_STOP);
    if !fs::exists(&mark).await? {
        return Ok(None);
    }
    let bytes = fs::read(&mark).await?;
    fs::remove_file(&mark).await?;
    fs::sync_dir(path).await?;
    Ok(String::from_utf8_lossy(&bytes).trim().parse().ok())
}

/// How many slots the directory was made for, read before any executor exists. None when it is
/// new. Damage is reported by the start itself.
pub fn slots_of(path: &Path) -> Result<Option<u16>, StartError> {
    match std::fs::read_to_string(path.join(IDENTITY)) {
        Ok(text) => Ok(parse_identity(&text).ok().map(|file| file.slots)),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(StartError::Directory {
            path: path.display().to_string(),
            what: format!("cannot be read: {why}"),
        }),
    }
}

const LOCK: &str = ".lock";
const IDENTITY: &str = "coretide.identity";
const CLEAN_STOP: &str = "clean-stop";
const FORMAT: i32 = 1;
/// How long the ports of a process that is gone may still be held.
const PREDECESSOR_WAIT: Duration = Duration::from_secs(1);
const PREDECESSOR_POLL: Duration = Duration::from_millis(10);
