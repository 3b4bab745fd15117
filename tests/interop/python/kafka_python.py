"""kafka-python against a broker: every codec there and back, and the life of a topic.

kafka_python.py BOOTSTRAP RECORDS
"""
import sys
import uuid

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, OffsetSpec
from kafka.errors import TopicAlreadyExistsError

from expected import PARTITIONS, case, check, expected, finish, wait_until

BOOTSTRAP, RECORDS = sys.argv[1], int(sys.argv[2])
admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)


def create(topic, partitions, configs=None):
    admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1, "configs": configs or {}}},
                        wait_for_metadata=True)


def partitions_of(topic):
    return admin.describe_topics([topic])[0]["partitions"]


def produce(topic, codec):
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, compression_type=None if codec == "none" else codec,
                             linger_ms=5, acks="all", enable_idempotence=True)
    futures = []
    for index in range(RECORDS):
        partition, key, value, headers = expected(index, codec)
        futures.append(producer.send(topic, value=value, key=key, headers=headers, partition=partition))
    producer.flush(120)
    for index, future in enumerate(futures):
        offset = future.get(60).offset
        check(offset == index // PARTITIONS, f"record {index} was acknowledged at offset {offset}")
    producer.close()


def read_back(topic, codec):
    consumer = KafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=None, check_crcs=True, auto_offset_reset="none",
                             consumer_timeout_ms=60000)
    consumer.assign([TopicPartition(topic, partition) for partition in range(PARTITIONS)])
    consumer.seek_to_beginning()
    nexts, total = [0] * PARTITIONS, 0
    while total < RECORDS:
        message = next(consumer)
        partition, offset = message.partition, message.offset
        check(offset == nexts[partition], f"partition {partition}: offset {offset} after {nexts[partition] - 1}")
        got = (partition, message.key, message.value, list(message.headers))
        wanted = expected(offset * PARTITIONS + partition, codec)
        check(got == wanted, f"wanted {wanted}, got {got}")
        nexts[partition], total = offset + 1, total + 1
    ends = consumer.end_offsets([TopicPartition(topic, partition) for partition in range(PARTITIONS)])
    check(sum(ends.values()) == RECORDS, f"the partitions end at {ends}")
    consumer.close()


def there_and_back(codec):
    topic = f"kafka-python-{codec}-{uuid.uuid4().hex[:8]}"
    create(topic, PARTITIONS)
    produce(topic, codec)
    read_back(topic, codec)
    admin.delete_topics([topic])


def configs_of(topic):
    found = admin.describe_configs([ConfigResource("TOPIC", topic)], config_filter="all")["topic"][topic]
    return {name: each["value"] for name, each in found.items()}


def life_of_a_topic():
    topic = f"kafka-python-life-{uuid.uuid4().hex[:8]}"
    create(topic, PARTITIONS, {"retention.ms": "3600000"})
    nodes = len(admin.describe_cluster()["brokers"])
    spread = len({each["leader_id"] for each in partitions_of(topic)})
    check(spread == min(nodes, PARTITIONS), f"{PARTITIONS} partitions are on {spread} of {nodes} nodes")
    check(configs_of(topic)["retention.ms"] == "3600000", "retention.ms as created")
    admin.alter_configs([ConfigResource("TOPIC", topic, {"max.message.bytes": "65536"})])
    wait_until("the new config shows", lambda: configs_of(topic)["max.message.bytes"] == "65536")
    check(configs_of(topic)["retention.ms"] == "3600000", "the other config is kept")
    admin.create_partitions({topic: PARTITIONS + 3})
    wait_until("the new partitions show", lambda: len(partitions_of(topic)) == PARTITIONS + 3)
    try:
        create(topic, 1)
        check(False, "the topic was created twice")
    except TopicAlreadyExistsError:
        pass
    offsets = admin.list_partition_offsets({TopicPartition(topic, 0): OffsetSpec.LATEST})
    check(offsets[TopicPartition(topic, 0)].offset == 0, "an empty partition ends at 0")
    admin.delete_topics([topic])
    wait_until("the topic is gone", lambda: topic not in admin.list_topics())


for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    case(f"{codec}: there and back", there_and_back, codec)
case("the life of a topic", life_of_a_topic)
finish()
