//! The broker keys of groups as decisions want them: made when they change, not for every decision.

use std::cell::RefCell;
use std::rc::Rc;

use coordinator::{Assignor, ConsumerGroupSettings, GroupSettings, GroupTiming, Migration};
use metadata::configs::{self, BrokerSettings};
use metadata::topic_name::OFFSETS_TOPIC;

use crate::slot::Slot;

/// What was made last, and of what.
#[derive(Default)]
pub struct Settings {
    known: RefCell<Option<(Rc<BrokerSettings>, Rc<GroupSettings>)>>,
}

impl Settings {
    pub fn of(&self, slot: &Slot) -> Rc<GroupSettings> {
        let broker = slot.settings();
        let log = slot.shard.topic(OFFSETS_TOPIC).map(|topic| topic.settings().max_message_bytes);
        let record_bytes_max = log.map_or(0, |bytes| bytes.max(0) as usize);
        let mut known = self.known.borrow_mut();
        if let Some((of, made)) = &*known
            && Rc::ptr_eq(of, &broker)
            && made.record_bytes_max == record_bytes_max
        {
            return Rc::clone(made);
        }
        let made = Rc::new(settings_of(&broker.groups, record_bytes_max));
        *known = Some((broker, Rc::clone(&made)));
        made
    }
}

fn settings_of(groups: &configs::GroupSettings, record_bytes_max: usize) -> GroupSettings {
    GroupSettings {
        initial_rebalance_delay_ms: i64::from(groups.initial_rebalance_delay_ms.max(0)),
        session_timeout_min_ms: groups.session_timeout_min_ms,
        session_timeout_max_ms: groups.session_timeout_max_ms,
        members_max: groups.members_max.max(1) as usize,
        offset_metadata_chars_max: groups.offset_metadata_max.max(0) as usize,
        offsets_retention_ms: i64::from(groups.offsets_retention_minutes) * 60_000,
        record_bytes_max,
        consumer: consumer_settings(&groups.consumer),
    }
}

fn consumer_settings(keys: &configs::ConsumerGroupSettings) -> ConsumerGroupSettings {
    let timing = |key, it: configs::GroupTime| GroupTiming {
        key,
        usual: it.usual,
        least: it.least,
        most: it.most,
    };
    ConsumerGroupSettings {
        session_timeout_ms: timing("consumer.session.timeout.ms", keys.session_timeout_ms),
        heartbeat_interval_ms: timing("consumer.heartbeat.interval.ms", keys.heartbeat_interval_ms),
        assignment_interval_ms: timing(
            "consumer.assignment.interval.ms",
            keys.assignment_interval_ms,
        ),
        members_max: keys.members_max.max(1) as usize,
        assignors: keys.assignors.iter().filter_map(|name| Assignor::named(name)).collect(),
        migration: match keys.migration_policy.to_ascii_lowercase().as_str() {
            "disabled" => Migration::Disabled,
            "upgrade" => Migration::Upgrade,
            "downgrade" => Migration::Downgrade,
            _ => Migration::Bidirectional,
        },
        pattern_refresh_ms: i64::from(keys.pattern_refresh_ms),
    }
}
