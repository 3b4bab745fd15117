//! Consuming as a member of a group: join, read the share, commit what was printed, join again
//! when the group rebalances, commit and leave at the end.
//!
//! Law: nothing is committed that was not printed and flushed; so a record is printed once at
//! least. Where nothing was committed before, the beginning is, so that the lag can be seen.
//! A member that is interrupted commits and leaves, so that the others need not wait for
//! its session to end.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use protocol::messages::metadata::MetadataResponseTopic;

use super::print::{PAUSE, Printer};
use super::reading::{Reader, Reading};
use super::{ConsumeArgs, starts};
use crate::client::Client;
use crate::client::group;
use crate::client::member::Member;
use crate::client::positions::{LATEST, positions};

/// What ends a share.
#[derive(PartialEq, Eq)]
enum Ended {
    /// The group rebalances.
    Rebalance,
    /// There is nothing more to do.
    Done,
}

struct Session<'a> {
    client: &'a mut Client,
    member: Member,
    printer: Printer<'a>,
    interrupted: Arc<AtomicBool>,
}

pub(super) fn run(
    args: &ConsumeArgs,
    client: &mut Client,
    topic: &MetadataResponseTopic,
    group: &str,
) -> anyhow::Result<()> {
    let interrupted = watch_signals()?;
    let ends = if args.until_end { positions(client, topic, LATEST)? } else { Default::default() };
    let topics = [topic.name.clone().unwrap_or_default()];
    let member = Member::new(client, group, args.instance.as_deref(), &topics)?;
    let mut session = Session { client, member, printer: Printer::new(args), interrupted };
    loop {
        let (mut reader, committed) = session.join(args, topic, group, &ends)?;
        if session.read(args, &mut reader, committed)? == Ended::Done {
            break;
        }
    }
    // A static member stays in the group, to come back to its share.
    match args.instance {
        Some(_) => Ok(()),
        None => session.member.leave(session.client),
    }
}

/// Interrupts are waited for on a thread of their own, so that what is under way is finished.
fn watch_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals.thread_block()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let seen = interrupted.clone();
    std::thread::spawn(move || {
        if signals.wait().is_ok() {
            seen.store(true, Ordering::SeqCst);
        }
        // The second one ends the process at once.
        if signals.wait().is_ok() {
            std::process::exit(130);
        }
    });
    Ok(interrupted)
}

impl Session<'_> {
    /// Joins, and begins where the group has committed; gives what it has, too.
    fn join(
        &mut self,
        args: &ConsumeArgs,
        topic: &MetadataResponseTopic,
        group: &str,
        ends: &BTreeMap<i32, i64>,
    ) -> anyhow::Result<(Reader, BTreeMap<i32, i64>)> {
        let mut reader = Reader::new(topic, args.rate.is_some());
        let share = self.member.join(self.client)?;
        let name = topic.name.clone().unwrap_or_default();
        let share = share.get(&name).cloned().unwrap_or_default();
        let committed = group::committed(self.client, self.member.coordinator(), group)?;
        let committed: BTreeMap<i32, i64> = committed
            .into_iter()
            .filter(|it| it.topic == name)
            .map(|it| (it.partition, it.offset))
            .collect();
        let starts = match share.iter().all(|it| committed.contains_key(it)) {
            true => BTreeMap::new(),
            false => starts(args, self.client, topic)?,
        };
        for index in share {
            let next = committed.get(&index).or(starts.get(&index)).copied().unwrap_or(0);
            reader.readings.insert(index, Reading::new(next, ends.get(&index).copied()));
        }
        Ok((reader, committed))
    }

    /// Reads a share until the group rebalances or all is done; either way, what was printed is
    /// committed.
    fn read(
        &mut self,
        args: &ConsumeArgs,
        reader: &mut Reader,
        mut committed: BTreeMap<i32, i64>,
    ) -> anyhow::Result<Ended> {
        let mut due = Instant::now() + COMMIT_INTERVAL;
        let ended = loop {
            let over = args.until_end && reader.is_at_end();
            if over || self.printer.is_done() || self.interrupted.load(Ordering::SeqCst) {
                break Ended::Done;
            }
            if !self.member.beat(self.client)? {
                break Ended::Rebalance;
            }
            if reader.readings.is_empty() || !self.printer.may_print() {
                std::thread::sleep(PAUSE);
            } else {
                for (index, batches) in reader.fetch(self.client)? {
                    if let Some(reading) = reader.readings.get_mut(&index) {
                        self.printer.print(index, reading, batches)?;
                    }
                }
                self.printer.out.flush()?;
            }
            if Instant::now() >= due {
                due = Instant::now() + COMMIT_INTERVAL;
                if !self.commit(reader, &mut committed)? {
                    break Ended::Rebalance;
                }
            }
        };
        // Too late for who is no member any more: whoever has the share now prints it again.
        self.commit(reader, &mut committed)?;
        Ok(ended)
    }

    fn commit(
        &mut self,
        reader: &Reader,
        committed: &mut BTreeMap<i32, i64>,
    ) -> anyhow::Result<bool> {
        let now = positions_of(reader);
        let news = now.iter().filter(|(index, next)| committed.get(index) != Some(next));
        let news: BTreeMap<i32, i64> = news.map(|(&index, &next)| (index, next)).collect();
        let is_member = self.member.commit(self.client, reader.topic(), &news)?;
        if is_member {
            *committed = now;
        }
        Ok(is_member)
    }
}

fn positions_of(reader: &Reader) -> BTreeMap<i32, i64> {
    reader.readings.iter().map(|(&index, reading)| (index, reading.next)).collect()
}

const COMMIT_INTERVAL: Duration = Duration::from_secs(1);
