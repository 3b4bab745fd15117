//! Hosts start, clusters are formatted, features are advertised, producer ids are given out.

use std::collections::BTreeSet;

use metadata::configs::StaticSettings;
use metadata::controller::{
    FEATURES, HostFacts, HostStart, PRODUCER_ID_BLOCK, RandomIds, StartError,
    allocate_producer_ids, start_host, unregister_broker, update_features,
};
use metadata::record::{MetadataRecord, PreviousStop};
use metadata::{ConfigResource, Decision, Image};
use proptest::prelude::{any, proptest};
use protocol::messages::unregister_broker::UnregisterBrokerRequest;
use protocol::messages::update_features::{FeatureUpdateKey, UpdateFeaturesRequest};
use protocol::{ErrorCode, HostId, SlotIndex};

use crate::world::{HOST, after, context, hosts, id, one_host, text, with_topics};

fn facts(slots: u16, previous_stop: PreviousStop) -> HostFacts {
    HostFacts {
        host: HOST,
        directory: id(200),
        advertised_host: text("host-1.example"),
        client_port: 9092,
        slots,
        rack: None,
        previous_stop,
    }
}

fn start(image: &Image, facts: &HostFacts) -> Result<(Image, HostStart), StartError> {
    let statics = StaticSettings::default();
    let Decision { records, response, .. } = start_host(&context(image, &statics), facts)?;
    Ok((after(image, &records), response))
}

#[test]
fn the_first_start_formats_the_cluster() {
    let (image, started) = start(&Image::default(), &facts(2, PreviousStop::Clean)).unwrap();
    assert_eq!(image.cluster_id(), Some(&started.cluster_id));
    assert_eq!(started.cluster_id.len(), 22, "as Kafka's");
    assert_eq!((started.incarnation, started.slots), (1, 2));
    assert_eq!(image.nodes().count(), 2);
    assert_eq!(image.feature_level("metadata.version"), 33);
    let in_sync = image.config(&ConfigResource::AllNodes, "min.insync.replicas");
    assert_eq!(in_sync, Some(&text("1")));
}

#[test]
fn every_start_is_a_new_incarnation_and_little_else() {
    let (image, first) = start(&Image::default(), &facts(2, PreviousStop::Clean)).unwrap();
    let statics = StaticSettings::default();
    let again = facts(2, PreviousStop::Clean);
    let decision = start_host(&context(&image, &statics), &again).unwrap();
    assert!(matches!(decision.records[..], [MetadataRecord::HostStarted(_)]));
    assert_eq!(decision.response.incarnation, first.incarnation + 1);
    assert_eq!(decision.response.cluster_id, first.cluster_id);
}

#[test]
fn an_unclean_start_raises_leader_epochs_by_one_record() {
    let (image, _) = start(&Image::default(), &facts(2, PreviousStop::Clean)).unwrap();
    let image = with_topics(&image, &[("t", 5)]);
    let statics = StaticSettings::default();
    let unclean = facts(2, PreviousStop::Unclean);
    let decision = start_host(&context(&image, &statics), &unclean).unwrap();
    assert_eq!(decision.records.len(), 1);
    let image = after(&image, &decision.records);
    assert!(image.topic("t").unwrap().indexed().all(|(_, it)| it.leader_epoch == 1));
}

/// With fewer cores than before, slots stay: partitions live on them.
#[test]
fn slots_never_go_away() {
    let (image, _) = start(&Image::default(), &facts(4, PreviousStop::Clean)).unwrap();
    let (image, fewer) = start(&image, &facts(2, PreviousStop::Clean)).unwrap();
    assert_eq!((fewer.slots, image.nodes().count()), (4, 4));
    let (image, more) = start(&image, &facts(8, PreviousStop::Clean)).unwrap();
    assert_eq!((more.slots, image.nodes().count()), (8, 8));
}

#[test]
fn a_new_address_is_registered() {
    let (image, _) = start(&Image::default(), &facts(1, PreviousStop::Clean)).unwrap();
    let moved = HostFacts { client_port: 19092, ..facts(1, PreviousStop::Clean) };
    let (image, started) = start(&image, &moved).unwrap();
    assert_eq!(image.nodes().next().map(|node| node.port), Some(19092));
    assert_eq!(started.incarnation, 2);
}

#[test]
fn another_directory_under_the_same_host_id_is_refused() {
    let (image, _) = start(&Image::default(), &facts(1, PreviousStop::Clean)).unwrap();
    let swapped = HostFacts { directory: id(201), ..facts(1, PreviousStop::Clean) };
    let error = start(&image, &swapped).unwrap_err();
    assert!(matches!(error, StartError::ForeignDirectory { .. }), "{error}");
}

#[test]
fn a_cluster_takes_its_in_sync_number_from_the_first_start() {
    let mut statics = StaticSettings::default();
    statics.set("min.insync.replicas", "2").unwrap();
    let image = Image::default();
    let at = context(&image, &statics);
    let decision = start_host(&at, &facts(1, PreviousStop::Clean)).unwrap();
    let image = after(&image, &decision.records);
    let in_sync = image.config(&ConfigResource::AllNodes, "min.insync.replicas");
    assert_eq!(in_sync, Some(&text("2")));
}

// ---- UnregisterBroker

#[test]
fn only_what_is_gone_for_good_is_unregistered() {
    let code = |image: &Image, broker_id| {
        let statics = StaticSettings::default();
        let request = UnregisterBrokerRequest { broker_id };
        unregister_broker(&context(image, &statics), &request).response.error_code
    };
    for unknown in [987_654, -1, 7, 1002] {
        assert_eq!(code(&one_host(2), unknown), ErrorCode::BROKER_ID_NOT_REGISTERED);
    }
    assert_eq!(code(&one_host(2), 1000), ErrorCode::INVALID_REQUEST, "the last host");
    let image = with_topics(&hosts(2, 1), &[("t", 1)]);
    let on = image.topic("t").unwrap().partition(0).unwrap().leader_node().unwrap();
    let other = if on.0 == 1000 { 2000 } else { 1000 };
    assert_eq!(code(&image, on.0), ErrorCode::INVALID_REQUEST, "it has a replica");
    assert_eq!(code(&image, other), ErrorCode::NONE);
}

// ---- features

#[test]
fn features_are_those_that_are_served() {
    let names: Vec<_> = FEATURES.iter().map(|feature| feature.name).collect();
    assert_eq!(names, ["group.version", "kraft.version", "metadata.version"]);
    for feature in FEATURES {
        assert!((feature.least..=feature.most).contains(&feature.initial));
    }
}

#[test]
fn feature_updates_are_checked() {
    let (image, _) = start(&Image::default(), &facts(1, PreviousStop::Clean)).unwrap();
    let update = |feature: &str, level, upgrade_type| {
        let statics = StaticSettings::default();
        let update = FeatureUpdateKey {
            feature: text(feature),
            max_version_level: level,
            allow_downgrade: false,
            upgrade_type,
        };
        let request = UpdateFeaturesRequest { feature_updates: vec![update], ..Default::default() };
        update_features(&context(&image, &statics), &request)
    };
    for (feature, level, kind) in [
        ("colour.version", 1, 1),
        ("transaction.version", 2, 1),
        ("transaction.version", 99, 1),
        ("group.version", 2, 1),
        ("", 1, 1),
        ("metadata.version", 70, 1),
        ("metadata.version", 7, 2),
        ("metadata.version", -1, 1),
        ("metadata.version", 33, 9),
        ("kraft.version", 1, 1),
    ] {
        let decision = update(feature, level, kind);
        assert_eq!(
            decision.response.error_code,
            ErrorCode::INVALID_UPDATE_VERSION,
            "{feature} {level} {kind}"
        );
        assert!(decision.response.error_message.is_some());
        assert_eq!(decision.records, []);
    }
    let same = update("metadata.version", 33, 1);
    assert_eq!((same.response.error_code, same.records), (ErrorCode::NONE, vec![]));
}

// ---- producer ids

#[test]
fn blocks_of_producer_ids_never_overlap() {
    let (mut image, mut expected) = (one_host(2), 0);
    for slot in [0, 1, 0] {
        let statics = StaticSettings::default();
        let decision =
            allocate_producer_ids(&context(&image, &statics), HOST, SlotIndex(slot)).unwrap();
        assert_eq!(
            (decision.response.first, decision.response.count),
            (expected, PRODUCER_ID_BLOCK)
        );
        expected += PRODUCER_ID_BLOCK;
        image = after(&image, &decision.records);
    }
    assert_eq!(image.next_producer_id(), expected);
}

proptest! {
    #[test]
    fn ids_are_distinct_and_fit_for_command_lines(seed in any::<u128>()) {
        let mut ids = RandomIds::new(seed);
        let drawn: BTreeSet<_> = (0..200).map(|_| ids.next_id()).collect();
        assert_eq!(drawn.len(), 200);
        assert!(drawn.iter().all(|id| !id.to_string().starts_with('-') && !id.is_zero()));
        let mut again = RandomIds::new(seed);
        let redrawn: BTreeSet<_> = (0..200).map(|_| again.next_id()).collect();
        assert_eq!(drawn, redrawn);
    }
}

#[test]
fn hosts_have_ids_of_their_own() {
    let image = hosts(2, 1);
    assert!(image.host(HostId(2)).is_some() && image.host(HostId(3)).is_none());
}
