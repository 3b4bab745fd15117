"""confluent-kafka against a broker: every codec there and back, and the life of a topic.

confluent.py BOOTSTRAP RECORDS                       all cases
confluent.py BOOTSTRAP RECORDS --verify TOPIC CODEC  only reads what another client has written
"""
import sys
import uuid

from confluent_kafka import (OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicCollection,
                             TopicPartition)
from confluent_kafka.admin import (AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions,
                                   NewTopic, OffsetSpec, ResourceType)

from expected import PARTITIONS, case, check, expected, finish, wait_until

BOOTSTRAP, RECORDS = sys.argv[1], int(sys.argv[2])
admin = AdminClient({"bootstrap.servers": BOOTSTRAP})


def all_of(futures):
    return {name: future.result(60) for name, future in futures.items()}


def create(topic, partitions, config=None):
    all_of(admin.create_topics([NewTopic(topic, partitions, 1, config=config or {})]))
    wait_until("the topic has its leaders", lambda: leaders(topic, partitions))


def leaders(topic, partitions):
    found = admin.list_topics(topic, timeout=30).topics[topic].partitions
    ready = len(found) == partitions and all(each.leader >= 0 for each in found.values())
    return [each.leader for each in found.values()] if ready else None


def produce(topic, codec):
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "compression.type": codec, "linger.ms": 5,
                         "enable.idempotence": True})
    failures = []
    for index in range(RECORDS):
        partition, key, value, headers = expected(index, codec)
        while True:
            try:
                producer.produce(topic, value, key, partition, headers=headers,
                                 on_delivery=lambda error, _: error and failures.append(str(error)))
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    left = producer.flush(60)
    check(left == 0 and not failures, f"{left} undelivered, {len(failures)} failed: {failures[:3]}")


def read_back(topic, codec):
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "none", "enable.auto.commit": False,
                         "enable.partition.eof": True, "check.crcs": True})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    nexts, ended = [0] * PARTITIONS, set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(60)
        check(message is not None, f"silence after {sum(nexts)} records")
        error = message.error()
        if error and error.code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
            continue
        check(error is None, str(error))
        partition, offset = message.partition(), message.offset()
        check(offset == nexts[partition], f"partition {partition}: offset {offset} after {nexts[partition] - 1}")
        got = (partition, message.key(), message.value(), message.headers())
        wanted = expected(offset * PARTITIONS + partition, codec)
        check(got == wanted, f"wanted {wanted}, got {got}")
        nexts[partition] += 1
    consumer.close()
    check(sum(nexts) == RECORDS, f"{sum(nexts)} of {RECORDS} records")


def there_and_back(codec):
    topic = f"confluent-{codec}-{uuid.uuid4().hex[:8]}"
    create(topic, PARTITIONS)
    produce(topic, codec)
    read_back(topic, codec)
    all_of(admin.delete_topics([topic]))


def configs_of(topic):
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return all_of(admin.describe_configs([resource]))[resource]


def life_of_a_topic():
    topic = f"confluent-life-{uuid.uuid4().hex[:8]}"
    create(topic, PARTITIONS, {"retention.ms": "3600000"})
    nodes = len(admin.list_topics(timeout=30).brokers)
    spread = len(set(leaders(topic, PARTITIONS)))
    check(spread == min(nodes, PARTITIONS), f"{PARTITIONS} partitions are on {spread} of {nodes} nodes")
    check(configs_of(topic)["retention.ms"].value == "3600000", "retention.ms as created")
    entry = ConfigEntry("max.message.bytes", "65536", incremental_operation=AlterConfigOpType.SET)
    all_of(admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]))
    wait_until("the new config shows", lambda: configs_of(topic)["max.message.bytes"].value == "65536")
    check(configs_of(topic)["retention.ms"].value == "3600000", "the other config is kept")
    all_of(admin.create_partitions([NewPartitions(topic, PARTITIONS + 3)]))
    wait_until("the new partitions have leaders", lambda: leaders(topic, PARTITIONS + 3))
    try:
        create(topic, 1)
        check(False, "the topic was created twice")
    except KafkaException as error:
        check(error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS, str(error))
    described = all_of(admin.describe_topics(TopicCollection([topic])))[topic]
    check(len(described.partitions) == PARTITIONS + 3, "described with all partitions")
    offsets = all_of(admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()}))
    check(next(iter(offsets.values())).offset == 0, "an empty partition ends at 0")
    cluster = admin.describe_cluster().result(60)
    check(cluster.cluster_id and len(cluster.nodes) == nodes, f"a cluster of {nodes} nodes")
    all_of(admin.delete_topics([topic]))
    wait_until("the topic is gone", lambda: topic not in admin.list_topics(timeout=30).topics)


def delete_records():
    topic = f"confluent-cut-{uuid.uuid4().hex[:8]}"
    create(topic, 1)
    producer = Producer({"bootstrap.servers": BOOTSTRAP})
    for index in range(100):
        producer.produce(topic, str(index))
    producer.flush(60)
    all_of(admin.delete_records([TopicPartition(topic, 0, 40)]))
    offsets = all_of(admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()}))
    check(next(iter(offsets.values())).offset == 40, "the log starts at 40")
    all_of(admin.delete_topics([topic]))


if "--verify" in sys.argv:
    topic, codec = sys.argv[-2:]
    case(f"{codec}: read back by confluent-kafka", read_back, topic, codec)
else:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        case(f"{codec}: there and back", there_and_back, codec)
    case("the life of a topic", life_of_a_topic)
    case("records are deleted", delete_records)
finish()
