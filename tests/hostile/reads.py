"""H36 to H47: reading, sessions, epochs, names and configs that cannot be."""
import os
import time

from room import Connection, batch, case, check, fetch_body, new_name, produce_body, request

I32_MAX, I64_MAX = (1 << 31) - 1, (1 << 63) - 1
MIB = 1 << 20


@case("H36")
def partitions_and_offsets_out_of_range(room):
    topic = room.topic()
    for number in range(3):
        room.accepts(f"record {number}", topic, batch([b"x"]))
    for partition in (-1, 1, I32_MAX, -(1 << 31)):
        part = room.fetch(topic, partition)
        check(part["error"] == 3, f"partition {partition}: error {part['error']}")
    for offset in (-1, 4, I64_MAX, -(1 << 63)):
        part = room.fetch(topic, 0, offset)
        check(part["error"] == 1, f"offset {offset}: error {part['error']}")
    part = room.fetch(topic, 0, 3, max_wait=0)
    check(part["error"] == 0 and not part["records"], f"the end itself: {part}")


@case("H37")
def sizes_and_waits_out_of_range(room):
    topic = room.topic()
    room.accepts("a record", topic, batch([b"x" * 100]))
    for most in (0, 1):
        part = room.fetch(topic, max_bytes=most)
        check(part["error"] == 0 and part["records"], f"max_bytes {most}: {part}")
    for wait in (-1, -(1 << 31), 0):
        part = room.fetch(topic, 0, 1, max_wait=wait)
        check(part["error"] == 0 and not part["records"], f"max_wait {wait}: {part}")
    part = room.fetch(topic, max_wait=100, min_bytes=I32_MAX)
    check(part["error"] == 0 and part["records"], f"min_bytes 2^31 - 1: {part}")
    part = room.fetch(topic, max_wait=I32_MAX)
    check(part["error"] == 0 and part["records"], f"max_wait 2^31 - 1: {part}")


@case("H37", ours=True)
def negative_sizes(room):
    topic = room.topic()
    room.accepts("a record", topic, batch([b"x" * 100]))
    for most in (-1, -(1 << 31)):
        part = room.fetch(topic, max_bytes=most)
        check(part["error"] in (0, 42), f"max_bytes {most}: {part}")


@case("H37")
def a_wait_ends_with_new_records(room):
    topic = room.topic()
    with room.leader(topic) as waiting:
        correlation = waiting.send("Fetch", fetch_body(topic, 0, 0, max_wait=I32_MAX))
        room.accepts("a record", topic, batch([b"x"]))
        answer = waiting.receive("Fetch", correlation, 10)
        check(answer["topics"][0]["partitions"][0]["records"], "the record comes at once")


@case("H38")
def fetch_sessions(room):
    topic = room.topic()
    with room.leader(topic) as connection:
        for what, body, error in (("an unknown session", {"session": 12345, "epoch": 1}, 70),
                                  ("no session, epoch 5", {"session": 0, "epoch": 5}, 70)):
            answer = room.ask("Fetch", fetch_body(topic, 0, 0, max_wait=0, **body), connection)
            check(answer["error"] == error, f"{what}: error {answer['error']}")
        opened = room.ask("Fetch", fetch_body(topic, 0, 0, max_wait=0, epoch=0), connection)
        session = opened["session"]
        check(session != 0, "a session was opened")
        answer = room.ask("Fetch", fetch_body(topic, 0, 0, max_wait=0, session=session, epoch=9), connection)
        check(answer["error"] == 71, f"a wrong epoch: error {answer['error']}")
        before, sessions = room.rss(), []
        for _ in range(2000):
            answer = room.ask("Fetch", fetch_body(topic, 0, 0, max_wait=0, epoch=0), connection)
            check(answer["error"] == 0, f"opening many sessions: error {answer['error']}")
            sessions.append(answer["session"])
        named = [each for each in sessions if each]
        check(len(set(named)) == len(named), "sessions share an id")
        room.grows_at_most(before, 16 * MIB, "2,000 fetch sessions")


@case("H39")
def leader_epochs(room):
    topic = room.topic()
    room.accepts("a record", topic, batch([b"x"]))
    metadata = room.ask("Metadata", {"topics": [{"name": topic}]})["topics"][0]
    epoch = metadata["partitions"][0]["epoch"]
    check(epoch >= 0, f"leader epoch {epoch}")
    part = room.fetch(topic, leader_epoch=epoch + 1)
    check(part["error"] == 75, f"a newer epoch: error {part['error']}")
    if epoch > 0:
        part = room.fetch(topic, leader_epoch=epoch - 1)
        check(part["error"] == 74, f"an older epoch: error {part['error']}")
    for what, topic_id, error in (("an unknown topic id", os.urandom(16), 100), ("no topic id", bytes(16), 100),
                                  ("the topic's own", metadata["id"], 0)):
        body = fetch_body(topic, 0, 0, max_wait=0)
        body["topics"][0]["id"] = topic_id
        with room.leader(topic) as connection:
            answer = room.ask("Fetch13", body, connection)
        found = answer["error"] or answer["topics"][0]["partitions"][0]["error"]
        check(found == error, f"{what}: error {found}")


@case("H40")
def a_client_that_plays_replica(room):
    topic = room.topic()
    room.accepts("a record", topic, batch([b"x"]))
    with room.leader(topic) as connection:
        for replica in (1, 2, 1000, 1001, I32_MAX):
            body = fetch_body(topic, 0, 1, max_wait=0, replica=replica)
            answer = room.ask("Fetch", body, connection)
            check(isinstance(answer["error"], int), "an answer")
    check(room.end(topic) == 1, f"the high watermark moved to {room.end(topic)}")
    room.accepts("the next record", topic, batch([b"x"]))
    check(room.end(topic) == 2, f"the log ends at {room.end(topic)}")


BAD_NAMES = ("../x", "a/b", ".", "..", "a\0b", "a" * 250, "naïve", "", " ", "a b", "/etc/passwd", "a\nb", "..\\x")


@case("H41")
def topic_names(room):
    for name in BAD_NAMES:
        answer = room.cluster.create(name, 1)
        check(answer["error"] == 17, f"creation of {name[:20]!r}: error {answer['error']}")
        found = room.ask("Metadata", {"topics": [{"name": name}], "create": True})["topics"][0]
        check(found["error"] in (3, 17), f"metadata of {name[:20]!r}: error {found['error']}")
        body = produce_body(name, 0, batch([b"x"]))
        error = room.ask("Produce", body)["topics"][0]["partitions"][0]["error"]
        check(error in (3, 17), f"produce to {name[:20]!r}: error {error}")
        error = room.cluster.delete(name)
        check(error in (3, 17), f"deletion of {name[:20]!r}: error {error}")
    name = new_name("a.b")
    room.cluster.create_ready(name, 1)
    room.topics.append(name)
    answer = room.cluster.create(name.replace(".", "_"), 1)
    check(answer["error"] == 17, f"a name that collides: error {answer['error']}")


@case("H41", ours=True)
def no_path_leaves_the_data_directory(room):
    if room.broker:
        parent = room.broker.data.parent
        check(not (parent / "x").exists() and not (parent / "x-0").exists(), "a file beside the data directory")
        strange = [p.name for p in room.broker.data.iterdir() if any(c in p.name for c in "/\\\0\n ") or ".." in p.name]
        check(not strange, f"strange names: {strange}")


@case("H42")
def creations_that_cannot_be(room):
    def create(what, errors, **topic):
        body = {"topics": [{"name": new_name("bad"), "partitions": 1, "factor": 1, **topic}], "timeout": 5000}
        answer = room.ask("CreateTopics", body)["topics"][0]
        check(answer["error"] in errors, f"{what}: error {answer['error']}, {answer['message']}")
        check(answer["message"], f"{what}: refused without a word")

    for partitions in (0, -2, -(1 << 31)):
        create(f"{partitions} partitions", (37,), partitions=partitions)
    for factor in (0, -2, 99, 32767):
        create(f"replication factor {factor}", (38,), factor=factor)
    one = [{"partition": 0, "brokers": list(room.cluster.nodes)[:1]}]
    create("an assignment and counts", (42,), assignments=one)
    create("an assignment to nobody", (39,), partitions=-1, factor=-1, assignments=[{"partition": 0, "brokers": [77]}])
    create("an assignment with a hole", (39,), partitions=-1, factor=-1,
           assignments=[{"partition": 1, "brokers": one[0]["brokers"]}])
    for name, value in (("no.such.config", "1"), ("retention.ms", "abc"), ("retention.ms", "-2"), ("segment.bytes", "1"),
                        ("cleanup.policy", "shred"), ("max.message.bytes", "-1"), ("compression.type", "rar")):
        create(f"{name}={value}", (40,), configs=[{"name": name, "value": value}])
    twin = {"name": new_name("twin"), "partitions": 1, "factor": 1}
    answers = room.ask("CreateTopics", {"topics": [twin, twin], "timeout": 5000})["topics"]
    check({each["error"] for each in answers} == {42}, f"one name twice: {answers}")


@case("H42", ours=True)
def more_partitions_than_can_be(room):
    began, before = time.monotonic(), room.rss()
    for partitions in (1_000_000, I32_MAX):
        body = {"topics": [{"name": new_name("wide"), "partitions": partitions, "factor": 1}], "timeout": 5000}
        error = room.ask("CreateTopics", body, timeout=60)["topics"][0]["error"]
        check(error in (37, 42, 44), f"{partitions} partitions: error {error}")
    check(time.monotonic() - began < 2, "the refusal takes its time")
    room.grows_at_most(before, 16 * MIB, "creations refused")


@case("H46")
def producer_ids(room):
    for what, body, errors in (("an empty transactional id", {"transaction": "", "timeout": 1000, "producer": -1, "epoch": -1}, (42,)),
                               ("an id without epoch", {"producer": 5, "epoch": -1}, (42,)),
                               ("an epoch without id", {"producer": -1, "epoch": 5}, (42,))):
        error = room.ask("InitProducerId", body)["error"]
        check(error in errors, f"{what}: error {error}")
    ids, before = set(), room.rss()
    for node in room.cluster.nodes:
        with Connection(room.cluster.nodes[node]) as connection:
            for _ in range(500):
                answer = room.ask("InitProducerId", {"timeout": 0, "producer": -1, "epoch": -1}, connection)
                while answer["error"] in (14, 15, 16):
                    answer = room.ask("InitProducerId", {"timeout": 0, "producer": -1, "epoch": -1}, connection)
                check(answer["error"] == 0 and answer["epoch"] == 0, f"{answer}")
                ids.add(answer["producer"])
    check(len(ids) == 500 * len(room.cluster.nodes), "two producers got the same id")
    room.grows_at_most(before, 8 * MIB, "producer ids")


@case("H47")
def timestamps_and_epochs_that_mean_nothing(room):
    topic = room.topic()
    room.accepts("a record", topic, batch([b"x"]))
    with room.leader(topic) as connection:
        for api in ("ListOffsets", "ListOffsets9"):
            for stamp in (-3, -4, -5, -6, -7, -100, -(1 << 63)):
                body = {"replica": -1, "topics": [{"name": topic, "partitions": [
                    {"partition": 0, "epoch": -1, "timestamp": stamp}]}]}
                error = room.ask(api, body, connection)["topics"][0]["partitions"][0]["error"]
                check(error in (0, 35, 42), f"{api}, timestamp {stamp}: error {error}")
        for partition in (-1, 1, I32_MAX):
            body = {"replica": -1, "topics": [{"name": topic, "partitions": [
                {"partition": partition, "current": -1, "epoch": 0}]}]}
            error = room.ask("OffsetForLeaderEpoch", body, connection)["topics"][0]["partitions"][0]["error"]
            check(error == 3, f"OffsetForLeaderEpoch, partition {partition}: error {error}")
            body = {"topics": [{"name": topic, "partitions": [partition]}]}
            error = room.ask("DescribeProducers", body, connection)["topics"][0]["partitions"][0]["error"]
            check(error == 3, f"DescribeProducers, partition {partition}: error {error}")
        for epoch in (-1, -2, 5, I32_MAX, -(1 << 31)):
            body = {"replica": -1, "topics": [{"name": topic, "partitions": [{"current": -1, "epoch": epoch}]}]}
            part = room.ask("OffsetForLeaderEpoch", body, connection)["topics"][0]["partitions"][0]
            check(part["error"] == 0, f"OffsetForLeaderEpoch, epoch {epoch}: {part}")


@case("H47")
def records_deleted_out_of_range(room):
    topic = room.topic()
    room.accepts("records", topic, batch([b"x"] * 10))
    with room.leader(topic) as connection:
        for offset, error in ((11, 1), (I64_MAX, 1), (-2, 1), (-(1 << 63), 1), (4, 0), (2, 0), (-1, 0)):
            body = {"topics": [{"name": topic, "partitions": [{"partition": 0, "offset": offset}]}], "timeout": 5000}
            part = room.ask("DeleteRecords", body, connection)["topics"][0]["partitions"][0]
            check(part["error"] == error, f"to {offset}: {part}")
    check(room.end(topic, timestamp=-2) == 10, "the log starts at its end")


@case("H62")
def config_values(room):
    topic = room.topic()
    for name, value in (("retention.ms", "1\n2"), ("retention.ms", "/etc/passwd"), ("retention.ms", "9" * 1000),
                        ("segment.bytes", "-1"), ("max.message.bytes", "1e3"), ("cleanup.policy", "x" * 30000),
                        ("flush.messages", "0"), ("min.insync.replicas", "0")):
        body = {"resources": [{"type": 2, "name": topic, "configs": [{"name": name, "operation": 0, "value": value}]}]}
        result = room.ask("IncrementalAlterConfigs", body)["results"][0]
        check(result["error"] in (40, 42), f"{name}={value[:20]!r}: error {result['error']}")
        check(not room.broker or len(result["message"] or "") < 10_000, f"{name}: the refusal repeats the value")


@case("N8")
def many_connections_come_and_go(room):
    before = room.broker.file_count() if room.broker else 0
    for _ in range(10):
        connections = [Connection(room.bootstrap) for _ in range(200)]
        for connection in connections[::2]:
            connection.write(request("Metadata", {"topics": []}, 1))
        for connection in connections:
            connection.close()
    deadline = time.monotonic() + 30
    while room.broker and room.broker.file_count() > before + 10:
        check(time.monotonic() < deadline, f"{room.broker.file_count()} files are open, {before} were")
        time.sleep(0.1)
    room.ask("Metadata", {"topics": []})
