//! Records and snapshots as bytes: what was written is read back, and nothing else is believed.

use metadata::record::{
    ClusterFormatted, ConfigChanged, ConfigResource, FeatureLevelSet, HostRegistered, HostStarted,
    HostUnregistered, MetadataRecord, NextLeader, PartitionChanged, PartitionCreated, PreviousStop,
    ProducerIdsAllocated, TopicCreated, TopicRemoved, decode_batch, encode_batch,
};
use metadata::{CodecError, Image, Partition, Replica};
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use protocol::{HostId, SlotIndex, Str, Uuid};

fn word() -> impl Strategy<Value = Str> {
    "[a-zA-Z0-9._-]{0,40}|\\PC{0,20}".prop_map(Str::from)
}

fn uuid() -> impl Strategy<Value = Uuid> {
    any::<[u8; 16]>().prop_map(Uuid)
}

fn host() -> impl Strategy<Value = HostId> {
    any::<i32>().prop_map(HostId)
}

fn replica() -> impl Strategy<Value = Replica> {
    (host(), any::<u16>()).prop_map(|(host, slot)| Replica { host, slot: SlotIndex(slot) })
}

fn partition() -> impl Strategy<Value = Partition> {
    let replicas = prop::collection::vec(replica(), 0..5);
    let in_sync = prop::collection::vec(host(), 0..5);
    (replicas, in_sync, option::of(host()), any::<i32>(), any::<i32>()).prop_map(
        |(replicas, in_sync, leader, leader_epoch, partition_epoch)| Partition {
            replicas,
            in_sync,
            leader,
            leader_epoch,
            partition_epoch,
        },
    )
}

fn resource() -> impl Strategy<Value = ConfigResource> {
    prop_oneof![
        word().prop_map(ConfigResource::Topic),
        replica().prop_map(|it| ConfigResource::Node { host: it.host, slot: it.slot }),
        Just(ConfigResource::AllNodes),
        word().prop_map(ConfigResource::ClientMetrics),
        word().prop_map(ConfigResource::Group),
    ]
}

fn registration() -> impl Strategy<Value = MetadataRecord> {
    let place = (word(), any::<u16>(), any::<u16>(), option::of(word()));
    (host(), any::<i64>(), uuid(), place).prop_map(|(host, incarnation, directory, place)| {
        let (advertised_host, client_port, slots, rack) = place;
        MetadataRecord::HostRegistered(HostRegistered {
            host,
            incarnation,
            directory,
            advertised_host,
            client_port,
            slots,
            rack,
        })
    })
}

fn change() -> impl Strategy<Value = MetadataRecord> {
    let leader =
        option::of(prop_oneof![host().prop_map(NextLeader::Host), Just(NextLeader::Nobody),]);
    let replicas = option::of(prop::collection::vec(replica(), 0..5));
    let in_sync = option::of(prop::collection::vec(host(), 0..5));
    (uuid(), any::<i32>(), replicas, in_sync, leader).prop_map(
        |(topic, index, replicas, in_sync, leader)| {
            MetadataRecord::PartitionChanged(PartitionChanged {
                topic,
                index,
                replicas,
                in_sync,
                leader,
            })
        },
    )
}

fn record() -> impl Strategy<Value = MetadataRecord> {
    prop_oneof![
        (word(), any::<u16>()).prop_map(|(cluster_id, format)| {
            MetadataRecord::ClusterFormatted(ClusterFormatted { cluster_id, format })
        }),
        registration(),
        (host(), any::<i64>(), any::<bool>()).prop_map(|(host, incarnation, clean)| {
            let previous_stop = if clean { PreviousStop::Clean } else { PreviousStop::Unclean };
            MetadataRecord::HostStarted(HostStarted { host, incarnation, previous_stop })
        }),
        host().prop_map(|host| MetadataRecord::HostUnregistered(HostUnregistered { host })),
        (word(), uuid())
            .prop_map(|(name, id)| MetadataRecord::TopicCreated(TopicCreated { name, id })),
        uuid().prop_map(|id| MetadataRecord::TopicRemoved(TopicRemoved { id })),
        (uuid(), any::<i32>(), partition()).prop_map(|(topic, index, partition)| {
            MetadataRecord::PartitionCreated(PartitionCreated { topic, index, partition })
        }),
        change(),
        (resource(), word(), option::of(word())).prop_map(|(resource, key, value)| {
            MetadataRecord::ConfigChanged(ConfigChanged { resource, key, value })
        }),
        (host(), any::<u16>(), any::<i64>()).prop_map(|(host, slot, next)| {
            let slot = SlotIndex(slot);
            MetadataRecord::ProducerIdsAllocated(ProducerIdsAllocated { host, slot, next })
        }),
        (word(), any::<i16>()).prop_map(|(name, level)| {
            MetadataRecord::FeatureLevelSet(FeatureLevelSet { name, level })
        }),
    ]
}

proptest! {
    #[test]
    fn a_batch_reads_back_as_it_was_written(batch in prop::collection::vec(record(), 0..8)) {
        assert_eq!(decode_batch(&encode_batch(&batch)), Ok(batch));
    }

    #[test]
    fn a_batch_cut_short_is_an_error(
        batch in prop::collection::vec(record(), 1..4), cut in any::<prop::sample::Index>()
    ) {
        let bytes = encode_batch(&batch);
        let cut = cut.index(bytes.len());
        assert!(decode_batch(&bytes[..cut]).is_err(), "{cut} of {} bytes", bytes.len());
    }

    #[test]
    fn bytes_of_any_kind_end_in_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(batch) = decode_batch(&bytes) {
            assert_eq!(decode_batch(&encode_batch(&batch)), Ok(batch));
        }
        let _ = Image::decode(&bytes);
    }

    #[test]
    fn a_snapshot_with_a_changed_byte_is_an_error_or_another_image(
        place in any::<prop::sample::Index>(), bit in 0..8u8
    ) {
        let image = crate::world::after(&crate::world::one_host(2), &[
            crate::world::topic("a", 1),
            crate::world::partition(1, 0, &[crate::world::replica(1, 0)]),
        ]);
        let mut bytes = image.encode();
        let place = place.index(bytes.len());
        bytes[place] ^= 1u8 << bit;
        if let Ok(other) = Image::decode(&bytes) {
            assert_ne!(other, image);
        }
    }
}

#[test]
fn a_record_of_a_newer_release_stops_the_reader() {
    let mut bytes = encode_batch(&[crate::world::topic("a", 1)]);
    // count, length of the block, kind, version
    bytes[3] = 1;
    assert!(matches!(decode_batch(&bytes), Err(CodecError::Newer { .. })), "{bytes:?}");
    bytes[3] = 0;
    bytes[2] = 99;
    assert!(matches!(decode_batch(&bytes), Err(CodecError::Newer { .. })), "{bytes:?}");
}

#[test]
fn what_follows_a_batch_is_an_error() {
    let mut bytes = encode_batch(&[crate::world::topic("a", 1)]);
    bytes.push(0);
    assert!(matches!(decode_batch(&bytes), Err(CodecError::TrailingBytes { .. })));
}

#[test]
fn a_count_that_cannot_be_true_allocates_nothing() {
    let claims_a_billion = [0x80, 0x94, 0xeb, 0xdc, 0x03];
    let error = decode_batch(&claims_a_billion);
    assert!(matches!(error, Err(CodecError::TooMany { .. })), "{error:?}");
}
