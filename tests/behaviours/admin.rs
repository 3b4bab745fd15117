//! What tools ask: pages of partitions, directories, the cluster.

use protocol::ErrorCode;
use protocol::messages::describe_cluster::DescribeClusterRequest;
use protocol::messages::describe_log_dirs::{DescribableLogDirTopic, DescribeLogDirsRequest};
use protocol::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, TopicRequest,
};

use crate::broker::Broker;
use crate::scenario::{Topic, batch, new_name};

/// DescribeTopicPartitions comes in pages, each beginning at the cursor of the one before.
#[test]
fn partitions_come_in_pages() {
    let broker = Broker::shared();
    let topics = [5, 1].map(|partitions| Topic::create(broker, new_name("pages"), partitions, &[]));
    let mut connection = broker.connect(1);
    let mut cursor: Option<Cursor> = None;
    let mut seen = Vec::new();
    for page in 0.. {
        assert!(page < 4, "{seen:?}");
        let named = topics.iter().map(|it| TopicRequest { name: it.name.clone() });
        let request = DescribeTopicPartitionsRequest {
            topics: named.collect(),
            response_partition_limit: 2,
            cursor: cursor.take(),
        };
        let answer = connection.ask(0, &request);
        let before = seen.len();
        for topic in answer.topics {
            let name = topic.name.unwrap();
            seen.extend(topic.partitions.iter().map(|it| (name.clone(), it.partition_index)));
        }
        assert!(seen.len() - before <= 2, "a page has at most two");
        cursor = answer.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let mut expected = Vec::new();
    for topic in &topics {
        expected.extend((0..).zip(&topic.leaders).map(|(index, _)| (topic.name.clone(), index)));
    }
    expected.sort();
    assert_eq!(seen, expected);
}

/// A limit of 0 or -1 is the default; a topic that is not there is told with its error.
#[test]
fn pages_have_a_default_size() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "page");
    for response_partition_limit in [0, -1] {
        let topics = vec![
            TopicRequest { name: topic.name.clone() },
            TopicRequest { name: new_name("zz-missing") },
        ];
        let request =
            DescribeTopicPartitionsRequest { topics, response_partition_limit, cursor: None };
        let answer = broker.connect(0).ask(0, &request);
        let told: Vec<_> =
            answer.topics.iter().map(|it| (it.error_code, it.partitions.len())).collect();
        let missing = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        assert_eq!(told, [(ErrorCode::NONE, 2), (missing, 0)]);
    }
}

/// DescribeLogDirs tells the size of what the node itself holds, and leaves out what is unknown.
#[test]
fn log_directories_are_told_per_node() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "sized");
    for partition in [0, 1] {
        let mut leader = topic.leader(broker, partition);
        let sent = batch(&["x"]);
        leader.write(&topic, partition, sent.clone());
        let asked = [topic.name.clone(), new_name("missing")]
            .map(|topic| DescribableLogDirTopic { topic, partitions: vec![0, 1, 7] });
        let request = DescribeLogDirsRequest { topics: Some(asked.to_vec()) };
        let answer = leader.ask(4, &request);
        let [directory] = answer.results.as_slice() else { panic!("{answer:?}") };
        assert!(directory.total_bytes >= directory.usable_bytes && directory.usable_bytes > 0);
        let [told] = directory.topics.as_slice() else { panic!("{directory:?}") };
        let sizes: Vec<_> =
            told.partitions.iter().map(|it| (it.partition_index, it.partition_size)).collect();
        assert_eq!((&told.name, sizes), (&topic.name, vec![(partition, sent.len() as i64)]));
    }
}

/// DescribeCluster lists the same nodes as metadata, none of them fenced.
#[test]
fn the_cluster_is_described() {
    let broker = Broker::shared();
    let mut answer = broker.connect(1).ask(2, &DescribeClusterRequest::default());
    answer.brokers.sort_by_key(|node| node.broker_id);
    let told: Vec<_> =
        answer.brokers.iter().map(|it| (it.broker_id, it.port, it.is_fenced)).collect();
    let port = i32::from(broker.port);
    assert_eq!(told, [(1000, port, false), (1001, port + 1, false)]);
    assert_eq!(answer.error_code, ErrorCode::NONE);
}
