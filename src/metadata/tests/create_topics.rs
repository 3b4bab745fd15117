//! CreateTopics and auto-creation: behaviours §3.20–25, hostile inputs H41 and H42, and what was
//! seen on Kafka 4.4.

use metadata::configs::StaticSettings;
use metadata::controller::{
    AutoCreated, InternalTopic, PARTITIONS_PER_REQUEST_MAX, auto_create_topics,
    create_internal_topic, create_topics,
};
use metadata::{ConfigResource, Decision, Image};
use proptest::prelude::{any, prop, proptest};
use protocol::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicResult, CreateTopicsRequest,
    CreateTopicsResponse,
};
use protocol::{ErrorCode, HostId, SlotIndex, Str, Uuid};

use crate::world::{
    HOST, after, context, creatable, hosts, one_host, text, with_configs, with_topics,
};

fn decide(image: &Image, topics: Vec<CreatableTopic>) -> Decision<CreateTopicsResponse> {
    let statics = StaticSettings::default();
    let request = CreateTopicsRequest { topics, ..CreateTopicsRequest::default() };
    create_topics(&context(image, &statics), &request)
}

/// The one refused topic's error; nothing may be committed for it.
fn refused(image: &Image, topic: CreatableTopic) -> ErrorCode {
    let decision = decide(image, vec![topic]);
    assert_eq!(decision.records, [], "a refused topic leaves no record");
    let [result] = &decision.response.topics[..] else { panic!("{:?}", decision.response) };
    assert_ne!(result.error_code, ErrorCode::NONE);
    assert!(result.error_message.as_ref().is_some_and(|text| !text.is_empty()), "{result:?}");
    assert_eq!((result.num_partitions, result.replication_factor), (-1, -1));
    assert_eq!(result.topic_id, Uuid::ZERO);
    result.error_code
}

fn assigned(name: &str, partitions: &[(i32, &[i32])]) -> CreatableTopic {
    let assignments = partitions.iter().map(|(index, nodes)| CreatableReplicaAssignment {
        partition_index: *index,
        broker_ids: nodes.to_vec(),
    });
    CreatableTopic { assignments: assignments.collect(), ..creatable(name, -1, -1) }
}

fn leaders(image: &Image, name: &str) -> Vec<i32> {
    let topic = image.topic(name).unwrap();
    topic.indexed().map(|(_, partition)| partition.leader_node().unwrap().0).collect()
}

#[test]
fn a_topic_is_created_and_described() {
    let image = one_host(2);
    let topic = with_configs(creatable("t", 3, 1), &[("retention.ms", Some("1234"))]);
    let decision = decide(&image, vec![topic]);
    let result: &CreatableTopicResult = &decision.response.topics[0];
    assert_eq!((result.error_code, &result.error_message), (ErrorCode::NONE, &None));
    assert_eq!((result.num_partitions, result.replication_factor), (3, 1));
    let configs = result.configs.as_ref().unwrap();
    assert_eq!(configs.len(), 37, "the full configuration (KIP-525)");
    let of = |name: &str| configs.iter().find(|config| config.name == *name).unwrap();
    assert_eq!(of("retention.ms").value, Some(text("1234")));
    assert_eq!(of("retention.ms").config_source, 1, "the topic's own");
    assert_eq!(of("segment.bytes").config_source, 5, "a default");
    let image = after(&image, &decision.records);
    assert_eq!(image.topic("t").unwrap().id, result.topic_id);
    let of_topic = ConfigResource::Topic(text("t"));
    assert_eq!(image.config(&of_topic, "retention.ms"), Some(&text("1234")));
}

/// §3.25: −1 means the broker's default, for each of the two numbers.
#[test]
fn minus_one_means_the_default() {
    let image = one_host(1);
    let mut statics = StaticSettings::default();
    statics.set("num.partitions", "4").unwrap();
    let topics = vec![creatable("both", -1, -1), creatable("f", 2, -1), creatable("p", -1, 1)];
    let request = CreateTopicsRequest { topics, ..CreateTopicsRequest::default() };
    let decision = create_topics(&context(&image, &statics), &request);
    let counts: Vec<_> = decision
        .response
        .topics
        .iter()
        .map(|it| (it.num_partitions, it.replication_factor))
        .collect();
    assert_eq!(counts, [(4, 1), (2, 1), (4, 1)]);
}

/// H41: none of these can reach a path outside the data directory.
#[test]
fn names_that_are_none_are_refused() {
    let image = one_host(1);
    let long = "x".repeat(250);
    for name in ["", ".", "..", "a/b", "a b", &long, "é", "a\0b", "a:b", "../x", "a\\b", "a\n"] {
        assert_eq!(
            refused(&image, creatable(name, 1, 1)),
            ErrorCode::INVALID_TOPIC_EXCEPTION,
            "{name:?}"
        );
    }
    let longest = "x".repeat(249);
    let decision = decide(&image, vec![creatable(&longest, 1, 1), creatable("a.b_c-D9", 1, 1)]);
    assert!(decision.response.topics.iter().all(|it| it.error_code == ErrorCode::NONE));
}

/// §3.24, H41: "a.b" and "a_b" collide, unless they come in one request.
#[test]
fn names_that_collide_are_refused() {
    let image = with_topics(&one_host(1), &[("a.b", 1)]);
    assert_eq!(refused(&image, creatable("a_b", 1, 1)), ErrorCode::INVALID_TOPIC_EXCEPTION);
    let together = decide(&one_host(1), vec![creatable("a.b", 1, 1), creatable("a_b", 1, 1)]);
    assert!(together.response.topics.iter().all(|it| it.error_code == ErrorCode::NONE));
}

/// H42: an existing name, also where something else is wrong, and also when only validated.
#[test]
fn an_existing_name_is_refused() {
    let image = with_topics(&one_host(1), &[("t", 1)]);
    assert_eq!(refused(&image, creatable("t", 1, 1)), ErrorCode::TOPIC_ALREADY_EXISTS);
    assert_eq!(refused(&image, creatable("t", 0, 1)), ErrorCode::TOPIC_ALREADY_EXISTS);
}

/// H42: a name twice in one request is refused, once, and the others go on.
#[test]
fn a_name_twice_in_a_request_is_refused_once() {
    let topics = vec![creatable("z", 1, 1), creatable("y", 1, 1), creatable("z", 1, 1)];
    let decision = decide(&one_host(1), topics);
    let results: Vec<_> =
        decision.response.topics.iter().map(|it| (it.name.to_string(), it.error_code)).collect();
    assert_eq!(results, [("z".into(), ErrorCode::INVALID_REQUEST), ("y".into(), ErrorCode::NONE)]);
    assert!(after(&one_host(1), &decision.records).topic("z").is_none());
}

/// H42: impossible counts.
#[test]
fn impossible_counts_are_refused() {
    let image = one_host(1);
    for partitions in [0, -2, -7] {
        let code = refused(&image, creatable("t", partitions, 1));
        assert_eq!(code, ErrorCode::INVALID_PARTITIONS, "{partitions}");
    }
    for partitions in [1_000_000, i32::MAX, PARTITIONS_PER_REQUEST_MAX as i32 + 1] {
        let code = refused(&image, creatable("t", partitions, 1));
        assert_eq!(code, ErrorCode::POLICY_VIOLATION, "{partitions}");
    }
    for factor in [0, -2, 2, 99, i16::MAX] {
        let code = refused(&image, creatable("t", 1, factor));
        assert_eq!(code, ErrorCode::INVALID_REPLICATION_FACTOR, "{factor}");
    }
}

#[test]
fn partitions_of_a_request_are_counted_together() {
    let half = PARTITIONS_PER_REQUEST_MAX as i32 / 2;
    let decision = decide(&one_host(1), vec![creatable("a", half, 1), creatable("b", half + 1, 1)]);
    let codes: Vec<_> = decision.response.topics.iter().map(|it| it.error_code).collect();
    assert_eq!(codes, [ErrorCode::POLICY_VIOLATION; 2]);
}

/// The factor counts hosts: the slots of one host do not add up to a replica more.
#[test]
fn a_factor_counts_hosts_not_nodes() {
    let code = refused(&one_host(4), creatable("t", 1, 2));
    assert_eq!(code, ErrorCode::INVALID_REPLICATION_FACTOR);
    let image = hosts(3, 2);
    let decision = decide(&image, vec![creatable("t", 4, 3)]);
    let image = after(&image, &decision.records);
    for (_, partition) in image.topic("t").unwrap().indexed() {
        let mut on: Vec<HostId> = partition.replicas.iter().map(|it| it.host).collect();
        on.sort();
        assert_eq!(on, [HostId(1), HostId(2), HostId(3)]);
    }
    assert_eq!(refused(&image, creatable("u", 1, 4)), ErrorCode::INVALID_REPLICATION_FACTOR);
}

/// H42, §3.25: with an assignment by hand both counts have to be −1.
#[test]
fn an_assignment_excludes_counts() {
    let image = one_host(1);
    for (partitions, factor) in [(1, 1), (-1, 1), (1, -1)] {
        let topic = CreatableTopic {
            num_partitions: partitions,
            replication_factor: factor,
            ..assigned("t", &[(0, &[1000])])
        };
        assert_eq!(refused(&image, topic), ErrorCode::INVALID_REQUEST);
    }
}

#[test]
fn an_assignment_is_followed() {
    let image = one_host(3);
    let decision = decide(&image, vec![assigned("t", &[(1, &[1001]), (0, &[1002])])]);
    let image = after(&image, &decision.records);
    assert_eq!(leaders(&image, "t"), [1002, 1001]);
    assert_eq!(decision.response.topics[0].num_partitions, 2);
}

#[test]
fn impossible_assignments_are_refused() {
    let image = hosts(2, 2);
    type Assignment<'a> = &'a [(i32, &'a [i32])];
    let cases: [(&str, Assignment<'_>); 9] = [
        ("a node twice", &[(0, &[1000, 1000])]),
        ("two slots of one host", &[(0, &[1000, 1001])]),
        ("no replica", &[(0, &[])]),
        ("an unknown host", &[(0, &[7000])]),
        ("an unknown slot", &[(0, &[1002])]),
        ("a negative node", &[(0, &[-1])]),
        ("a gap", &[(1, &[1000])]),
        ("a partition twice", &[(0, &[1000]), (0, &[1000])]),
        ("unequal factors", &[(0, &[1000]), (1, &[1000, 2000])]),
    ];
    for (what, partitions) in cases {
        let code = refused(&image, assigned("t", partitions));
        assert_eq!(code, ErrorCode::INVALID_REPLICA_ASSIGNMENT, "{what}");
    }
    let decision = decide(&image, vec![assigned("t", &[(0, &[1001, 2000])])]);
    assert_eq!(decision.response.topics[0].error_code, ErrorCode::NONE);
    assert_eq!(decision.response.topics[0].replication_factor, 2);
}

/// H42, H62, §3.25: everything that is wrong with a config is INVALID_CONFIG.
#[test]
fn wrong_configs_are_refused() {
    let image = one_host(1);
    let megabyte = "x".repeat(1 << 20);
    let cases = [
        ("no.such.key", Some("1")),
        ("", Some("x")),
        ("retention.ms", Some("soon")),
        ("retention.ms", Some("-5")),
        ("retention.ms", None),
        ("cleanup.policy", Some("burn")),
        ("preallocate", Some("maybe")),
        ("compression.type", Some("rar")),
        ("compression.type", Some("../../etc/passwd")),
        ("compression.type", Some(&megabyte)),
        ("min.insync.replicas", Some("0")),
        ("segment.bytes", Some("10")),
        ("message.timestamp.type", Some("Never")),
        ("min.cleanable.dirty.ratio", Some("1.5")),
        ("min.cleanable.dirty.ratio", Some("NaN")),
        ("max.message.bytes", Some("-1")),
    ];
    for (key, value) in cases {
        let topic = with_configs(creatable("t", 1, 1), &[(key, value)]);
        let shown = value.map(|it| &it[..it.len().min(20)]);
        assert_eq!(refused(&image, topic), ErrorCode::INVALID_CONFIG, "{key}={shown:?}");
    }
    let crossed = [("min.compaction.lag.ms", Some("100")), ("max.compaction.lag.ms", Some("50"))];
    let topic = with_configs(creatable("t", 1, 1), &crossed);
    assert_eq!(refused(&image, topic), ErrorCode::INVALID_CONFIG);
}

#[test]
fn what_cannot_be_honoured_is_refused_with_the_reason() {
    for (key, value, reason) in [
        ("remote.storage.enable", "true", "remote storage"),
        ("errors.deadletterqueue.group.enable", "true", "share groups"),
    ] {
        let topic = with_configs(creatable("t", 1, 1), &[(key, Some(value))]);
        let decision = decide(&one_host(1), vec![topic]);
        let result = &decision.response.topics[0];
        assert_eq!(result.error_code, ErrorCode::INVALID_CONFIG, "{key}={value}");
        let message = result.error_message.as_ref().unwrap();
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn what_does_nothing_is_accepted_with_a_warning() {
    let topic = with_configs(creatable("t", 1, 1), &[("preallocate", Some("true"))]);
    let decision = decide(&one_host(1), vec![topic]);
    assert_eq!(decision.response.topics[0].error_code, ErrorCode::NONE);
    assert!(decision.warnings[0].contains("preallocate"), "{:?}", decision.warnings);
}

#[test]
fn an_unknown_config_suggests_the_nearest() {
    let topic = with_configs(creatable("t", 1, 1), &[("retention.msec", Some("1"))]);
    let decision = decide(&one_host(1), vec![topic]);
    let message = decision.response.topics[0].error_message.clone().unwrap();
    assert!(message.contains("retention.ms'"), "{message}");
}

/// §7: a config given twice is accepted.
#[test]
fn of_a_config_given_twice_the_last_counts() {
    let twice = [("retention.ms", Some("1")), ("retention.ms", Some("2"))];
    let decision = decide(&one_host(1), vec![with_configs(creatable("t", 1, 1), &twice)]);
    let image = after(&one_host(1), &decision.records);
    let of_topic = ConfigResource::Topic(text("t"));
    assert_eq!(image.config(&of_topic, "retention.ms"), Some(&text("2")));
}

/// §3.25, §7: everything is decided, an id made up, nothing done.
#[test]
fn validate_only_makes_nothing() {
    let image = one_host(1);
    let statics = StaticSettings::default();
    let topics = vec![creatable("good", 2, 1), creatable("bad", 0, 1)];
    let request = CreateTopicsRequest { topics, validate_only: true, timeout_ms: 1 };
    let decision = create_topics(&context(&image, &statics), &request);
    assert_eq!(decision.records, []);
    let [good, bad] = &decision.response.topics[..] else { panic!() };
    assert_eq!((good.error_code, good.num_partitions), (ErrorCode::NONE, 2));
    assert_ne!(good.topic_id, Uuid::ZERO);
    assert_eq!(bad.error_code, ErrorCode::INVALID_PARTITIONS);
}

/// H42: the metadata log's name is taken.
#[test]
fn reserved_names_are_refused() {
    let code = refused(&one_host(1), creatable("__cluster_metadata", 1, 1));
    assert_eq!(code, ErrorCode::INVALID_REQUEST);
}

#[test]
fn good_and_bad_topics_do_not_mind_each_other() {
    let topics = vec![creatable("good", 1, 1), creatable("bad", -7, 1), creatable("a/b", 1, 1)];
    let decision = decide(&one_host(1), topics);
    let image = after(&one_host(1), &decision.records);
    assert!(image.topic("good").is_some());
    assert_eq!(image.topic_count(), 1);
}

/// §3.19: a topic made again under its old name is another topic.
#[test]
fn a_topic_made_again_has_another_id() {
    let image = one_host(1);
    let statics = StaticSettings::default();
    let request = CreateTopicsRequest { topics: vec![creatable("t", 1, 1)], ..Default::default() };
    let mut at = context(&image, &statics);
    let first = create_topics(&at, &request).response.topics[0].topic_id;
    at.random += 1;
    let second = create_topics(&at, &request).response.topics[0].topic_id;
    assert_ne!(first, second);
}

// ---- placement

#[test]
fn partitions_of_a_topic_are_spread_over_the_slots() {
    let image = with_topics(&one_host(4), &[("t", 10)]);
    let loads: Vec<_> = (0..4).map(|slot| image.load_of(HOST, SlotIndex(slot))).collect();
    assert_eq!(loads.iter().sum::<usize>(), 10);
    assert!(loads.iter().all(|load| (2..=3).contains(load)), "{loads:?}");
}

#[test]
fn small_topics_go_where_little_is() {
    let names: Vec<String> = (0..8).map(|number| format!("t{number}")).collect();
    let topics: Vec<_> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let image = with_topics(&one_host(4), &topics);
    let loads: Vec<_> = (0..4).map(|slot| image.load_of(HOST, SlotIndex(slot))).collect();
    assert_eq!(loads, [2, 2, 2, 2]);
}

proptest! {
    /// Whatever is there already, a topic differs by at most one partition between slots.
    #[test]
    fn a_topic_is_even_over_slots(
        slots in 1u16..9, before in prop::collection::vec(1i32..20, 0..6), partitions in 1i32..60
    ) {
        let names: Vec<String> = (0..before.len()).map(|it| format!("before-{it}")).collect();
        let topics: Vec<_> =
            names.iter().map(String::as_str).zip(before.iter().copied()).collect();
        let image = with_topics(&one_host(slots), &topics);
        let image = with_topics(&image, &[("t", partitions)]);
        let mut loads = vec![0; usize::from(slots)];
        for node in leaders(&image, "t") {
            loads[(node - 1000) as usize] += 1;
        }
        let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
        assert!(most - least <= 1, "{loads:?}");
    }

    /// The same inputs give the same decision, to the last id.
    #[test]
    fn decisions_are_pure(
        random in any::<u128>(), counts in prop::collection::vec(-2i32..6, 1..5)
    ) {
        let image = with_topics(&one_host(3), &[("t0", 2)]);
        let statics = StaticSettings::default();
        let topics = (0..).zip(&counts).map(|(it, &count)| creatable(&format!("t{it}"), count, 1));
        let request = CreateTopicsRequest { topics: topics.collect(), ..Default::default() };
        let mut at = context(&image, &statics);
        at.random = random;
        assert_eq!(create_topics(&at, &request), create_topics(&at, &request));
    }
}

// ---- topics that come into being by use

/// §3.20–21: what exists is found, what is no name is refused, the rest is created.
#[test]
fn auto_creation_takes_the_defaults() {
    let image = with_topics(&one_host(2), &[("there", 1)]);
    let mut statics = StaticSettings::default();
    statics.set("num.partitions", "3").unwrap();
    let names = ["there", "new", "a/b", "new", "__cluster_metadata"].map(text);
    let decision = auto_create_topics(&context(&image, &statics), &names);
    let outcomes: Vec<_> = decision
        .response
        .iter()
        .map(|AutoCreated { name, outcome }| {
            (name.to_string(), outcome.as_ref().map_err(|refusal| refusal.code).err())
        })
        .collect();
    assert_eq!(
        outcomes,
        [
            ("there".into(), None),
            ("new".into(), None),
            ("a/b".into(), Some(ErrorCode::INVALID_TOPIC_EXCEPTION)),
            ("__cluster_metadata".into(), Some(ErrorCode::INVALID_TOPIC_EXCEPTION)),
        ]
    );
    let image = after(&image, &decision.records);
    let created = image.topic("new").unwrap();
    assert_eq!(created.partitions.len(), 3);
    assert_eq!(decision.response[1].outcome, Ok(created.id));
}

/// H15: what a request can bring into being is bounded, and so is what it costs.
#[test]
fn auto_creation_of_very_many_stops_at_a_bound() {
    let image = one_host(1);
    let statics = StaticSettings::default();
    let names: Vec<Str> = (0..100_000).map(|at| Str::from(format!("t-{}", at / 2))).collect();
    let decision = auto_create_topics(&context(&image, &statics), &names);
    assert!(decision.records.len() <= PARTITIONS_PER_REQUEST_MAX + 2);
    assert_eq!(decision.response.len(), 50_000, "each name once");
    let created = decision.response.iter().filter(|each| each.outcome.is_ok()).count();
    assert_eq!(created, PARTITIONS_PER_REQUEST_MAX / 2, "a record for the topic, one for its log");
    let late = decision.response.last().unwrap().outcome.as_ref().unwrap_err();
    assert_eq!(late.code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

/// A single host keeps offsets although three hosts are the default.
#[test]
fn internal_topics_take_the_hosts_there_are() {
    let image = one_host(2);
    let statics = StaticSettings::default();
    let at = context(&image, &statics);
    for (topic, name) in [
        (InternalTopic::Offsets, "__consumer_offsets"),
        (InternalTopic::TransactionState, "__transaction_state"),
    ] {
        let decision = create_internal_topic(&at, topic);
        let created = after(&image, &decision.records);
        let found = created.topic(name).unwrap();
        assert_eq!(decision.response, Ok(found.id));
        assert_eq!(found.partitions.len(), 50);
        assert!(found.indexed().all(|(_, partition)| partition.replicas.len() == 1));
        let resource = ConfigResource::Topic(text(name));
        assert_eq!(created.config(&resource, "cleanup.policy"), Some(&text("compact")));
        let again = create_internal_topic(&context(&created, &statics), topic);
        assert_eq!(again.records, [], "it is there");
    }
}
