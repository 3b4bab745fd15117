"""H1 to H16: frames, headers, lengths, versions and sizes."""
import time

from kit.wire import uvarint
from room import (CALLS, CLOSED, Closed, Connection, Reader, Silent, batch, case, check, encode, fetch_body,
                  frame, header, produce_body, request, struct)

I32_MAX = (1 << 31) - 1
MIB = 1 << 20


def length(value):
    return struct.pack(">i", value)


@case("H1")
def frame_lengths_that_cannot_be(room):
    for value in (-1, -(1 << 31), 0):
        room.closes(f"length {value}", length(value) + bytes(8))


@case("H2")
def frames_that_are_not_ours(room):
    before = room.rss()
    for what, data in (("100 MiB + 1", length(100 * MIB + 1)), ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
                       ("TLS hello", bytes.fromhex("16030100c8010000c40303") + bytes(40)), ("2^31 - 1", length(I32_MAX))):
        began = time.monotonic()
        room.closes(what, data)
        check(time.monotonic() - began < 1.0, f"{what}: closed only after {time.monotonic() - began:.2f} s")
    room.grows_at_most(before, 1 * MIB, "refused frames")


@case("H3", ours=True)
def large_frames_that_do_not_come(room):
    before = room.rss()
    connections = [Connection(room.bootstrap) for _ in range(200)]
    for connection in connections:
        connection.write(length(100 * MIB) + b"\0")
    room.ask("Metadata", {"topics": []})
    time.sleep(0.5)
    room.grows_at_most(before, 200 * 64 * 1024, "200 promised frames of 100 MiB")
    for connection in connections:
        connection.close()


@case("H3", ours=True)
def half_a_header_ends_at_the_deadline(room):
    with Connection(room.bootstrap) as connection:
        connection.write(b"\0\0\0")
        with Connection(room.bootstrap) as other:
            other.write(length(100) + header(3, 12, 1))
            for name, each in (("3 bytes of a length", connection), ("half a frame", other)):
                try:
                    each.read_frame(timeout=60)
                    check(False, f"{name} got an answer")
                except Silent:
                    check(False, f"{name}: still open after 60 s")
                except Closed:
                    pass


@case("H3")
def a_frame_that_begins_with_the_one_before(room):
    with Connection(room.bootstrap) as connection:
        first, second = (request("Metadata", {"topics": []}, number) for number in (1, 2))
        for cut in (1, 4, 20):
            connection.write(first + second[:cut])
            connection.receive("Metadata", 1)
            connection.write(second[cut:])
            connection.receive("Metadata", 2)


@case("H4")
def unknown_keys_and_versions(room):
    for key in (-1, -32768, 95, 999, 32767):
        room.closes(f"key {key}", frame(header(key, 0, 1)))
    served = room.ask("ApiVersions", {"software": "suite", "software_version": "1"})["keys"]
    check(len(served) > 15, f"{len(served)} APIs are advertised")
    for each in served:
        if each["key"] == 18:
            continue
        for version in (-1, each["high"] + 1):
            room.closes(f"key {each['key']} v{version}", frame(header(each["key"], version, 1) + bytes(40)))
    for version in range(3):
        room.closes(f"Produce v{version}", frame(header(0, version, 1, flexible=False) + bytes(40)))


@case("H5")
def a_newer_api_versions(room):
    with Connection(room.bootstrap) as connection:
        connection.write(frame(header(18, 99, 7) + b"\1\1\0"))
        reader = Reader(connection.read_frame())
        check(reader.integer("i32") == 7, "the correlation id")
        check(reader.integer("i16") == 35, "error 35")
        keys = [tuple(reader.integer("i16") for _ in range(3)) for _ in range(reader.integer("i32"))]
        check([key for key in keys if key[0] == 18], f"ApiVersions is among {keys}")
        check(reader.left() == 0, f"{reader.left()} bytes more than version 0 has")
        check(room.ask("ApiVersions", {"software": "suite", "software_version": "1"}, connection)["error"] == 0, "next")


@case("H6")
def software_names(room):
    with Connection(room.bootstrap) as connection:
        for name in ('"; DROP', "", "a b", "-a", "a_b"):
            answer = room.ask("ApiVersions", {"software": name, "software_version": "1"}, connection)
            check(answer["error"] == 42, f"software name {name!r}: error {answer['error']}")
        answer = room.ask("ApiVersions", {"software": "a" * 30000, "software_version": "1.0"}, connection)
        check(answer["error"] == 0, f"a long name: error {answer['error']}")


@case("H7")
def apis_between_brokers(room):
    for key in (4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82):
        room.closes(f"key {key}", frame(header(key, 0, 1) + bytes(20)))


@case("H8")
def client_ids(room):
    for what, client in (("null", None), ("empty", b""), ("32767 bytes", b"x" * 32767), ("broken UTF-8", b"\xff\xfe\xfd"),
                         ("NUL", b"\0"), ("quotes", b'a"b\n{}')):
        room.served(what, request("Metadata", {"topics": []}, 1, client))
    room.closes("length -2", frame(struct.pack(">hhih", 3, 12, 1, -2)))


@case("H9")
def tagged_fields_of_a_header(room):
    head, body = header(3, 12, 1)[:-1], encode(CALLS["Metadata"].request, {"topics": []}, True)
    room.closes("2^32 - 1 tags", frame(head + uvarint((1 << 32) - 1) + body))
    room.closes("a tag larger than the rest", frame(head + b"\1" + uvarint(5) + uvarint(1 << 20) + body))
    before = room.rss()
    tags = b"".join(uvarint(tag) + b"\1x" for tag in range(100, 300100))
    found = room.outcome(frame(head + uvarint(300000) + tags + body))
    check(found == CLOSED or isinstance(found, bytes), f"300,000 tags: {found}")
    room.served("one unknown tag", frame(head + b"\1" + uvarint(77) + b"\3abc" + body))
    room.grows_at_most(before, 24 * MIB, "300,000 tags")


@case("H10")
def varints_without_end(room):
    head = header(3, 12, 1)
    for size in (6, 7, 10, 11, 40):
        room.closes(f"an array length of {size} bytes", frame(head + b"\xff" * (size - 1) + b"\x01" + bytes(8)))
        room.closes(f"a count of tags of {size} bytes", frame(head[:-1] + b"\xff" * (size - 1) + b"\x01" + bytes(8)))
    room.closes("nothing but continuation", frame(head + b"\xff" * 100))


@case("H11")
def array_lengths_that_lie(room):
    before = room.rss()
    for count in (I32_MAX, 1 << 20, 100):
        four = struct.pack(">i", count) + bytes(12)
        room.closes(f"Metadata v1, {count}", frame(header(3, 1, 1, flexible=False) + four))
        room.closes(f"ListOffsets v1, {count}", frame(header(2, 1, 1, flexible=False) + struct.pack(">i", -1) + four))
        fetch = struct.pack(">iiiib", -1, 0, 0, 100, 0)
        room.closes(f"Fetch v4, {count}", frame(header(1, 4, 1, flexible=False) + fetch + four))
        room.closes(f"Produce v3, {count}", frame(header(0, 3, 1, flexible=False) + struct.pack(">hhi", -1, -1, 9) + four))
        room.closes(f"DeleteTopics v1, {count}", frame(header(20, 1, 1, flexible=False) + four))
    for count in ((1 << 32) - 1, I32_MAX, 100):
        if count < 1 << 31:  # above that it is a negative length, and this array may be null
            room.closes(f"Metadata v12, {count}", frame(header(3, 12, 1) + uvarint(count) + bytes(12)))
        room.closes(f"CreateTopics v7, {count}", frame(header(19, 7, 1) + uvarint(count) + bytes(12)))
    room.grows_at_most(before, 4 * MIB, "arrays that lie")


@case("H12")
def negative_lengths(room):
    room.served("Metadata v1, null topics", frame(header(3, 1, 1, flexible=False) + struct.pack(">i", -1)))
    for count in (-1, -2):
        room.closes(f"Metadata v0, {count} topics", frame(header(3, 0, 1, flexible=False) + struct.pack(">i", count)))
        room.closes(f"DeleteTopics v1, {count} names", frame(header(20, 1, 1, flexible=False) + struct.pack(">ii", count, 9)))
        one = struct.pack(">ih", 1, count)
        room.closes(f"Metadata v1, a name of {count}", frame(header(3, 1, 1, flexible=False) + one))
    room.closes("CreateTopics v7, null topics", frame(header(19, 7, 1) + b"\0" + struct.pack(">i", 9) + b"\0\0"))


BODIES = {
    "ApiVersions": {"software": "suite", "software_version": "1"},
    "Metadata": {"topics": [{"name": "no-such-topic"}]},
    "CreateTopics": {"topics": [], "timeout": 1000},
    "DeleteTopics": {"topics": [{"name": "no-such-topic"}], "timeout": 1000},
    "Produce": produce_body("no-such-topic", 0, batch([b"x"])),
    "Fetch": fetch_body("no-such-topic", 0, 0),
    "ListOffsets": {"replica": -1, "topics": [{"name": "no-such-topic", "partitions": [{"timestamp": -1}]}]},
    "InitProducerId": {"producer": -1, "epoch": -1},
    "DeleteRecords": {"topics": [{"name": "no-such-topic", "partitions": [{"offset": 1}]}], "timeout": 1000},
    "OffsetForLeaderEpoch": {"replica": -1, "topics": [{"name": "no-such-topic", "partitions": [{"epoch": 1}]}]},
    "DescribeProducers": {"topics": [{"name": "no-such-topic", "partitions": [0]}]},
    "DescribeConfigs": {"resources": [{"type": 2, "name": "no-such-topic", "keys": None}]},
    "IncrementalAlterConfigs": {"resources": [{"type": 2, "name": "no-such-topic", "configs": [
        {"name": "retention.ms", "value": "1"}]}]},
}


@case("H13")
def bodies_cut_at_every_byte(room):
    for api, body in BODIES.items():
        if api == "ApiVersions":
            continue
        call, whole = CALLS[api], request(api, body, 1)[4:]
        head = len(header(call.key, call.version, 1, flexible=call.flexible))
        for cut in range(head - 1, len(whole)):
            room.closes(f"{api} v{call.version}, {cut - head} of {len(whole) - head} bytes", frame(whole[:cut]))


@case("H13")
def strings_that_are_too_long(room):
    name = uvarint(40001) + b"a" * 40000
    body = b"\2" + bytes(16) + name + b"\0" + b"\0\0\0"
    room.closes("a compact string of 40,000 bytes", frame(header(3, 12, 1) + body))


@case("H14")
def bytes_behind_a_body(room):
    with Connection(room.bootstrap) as connection:
        for api, body in BODIES.items():
            whole = request(api, body, 5)[4:] + b"\xff\xff\xff\xff trailing"
            connection.write(frame(whole))
            check(Reader(connection.read_frame()).integer("i32") == 5, f"{api} is answered")
        check(room.ask("Metadata", {"topics": []}, connection)["brokers"], "the connection goes on")


@case("H15")
def very_many_topics(room):
    names = [{"name": f"nothing-{index:06}"} for index in range(100_000)]
    with Connection(room.bootstrap) as connection:
        answer = room.ask("Metadata", {"topics": names}, connection, timeout=60)
        check({each["error"] for each in answer["topics"]} <= {3, 42}, "metadata of 100,000 unknown topics")
        part = [{"partition": 0, "epoch": -1, "timestamp": -1}]
        topics = [{"name": each["name"], "partitions": part} for each in names]
        answer = room.ask("ListOffsets", {"replica": -1, "topics": topics}, connection, timeout=60)
        check({p["error"] for t in answer["topics"] for p in t["partitions"]} <= {3, 42}, "offsets of 100,000 topics")
        parts = fetch_body("", 0, 0)["topics"][0]["partitions"]
        topics = [{"name": each["name"], "partitions": parts} for each in names]
        answer = room.ask("Fetch", {**fetch_body("", 0, 0), "topics": topics}, connection, timeout=60)
        check({p["error"] for t in answer["topics"] for p in t["partitions"]} <= {3, 42}, "fetch of 100,000 topics")


@case("H15")
def very_many_partitions_of_one_topic(room):
    parts = range(100_000)
    data = [{"partition": at, "records": b""} for at in parts]
    body = {**produce_body("", 0, b"", acks=1), "topics": [{"name": "nothing", "partitions": data}]}
    with Connection(room.bootstrap) as connection:
        answer = room.ask("Produce", body, connection, timeout=60)
        check({p["error"] for t in answer["topics"] for p in t["partitions"]} <= {3, 42}, "produce to 100,000")
        body = {"timeout": 30000, "topics": [
            {"name": "nothing", "partitions": [{"partition": at, "offset": 1} for at in parts]}]}
        answer = room.ask("DeleteRecords", body, connection, timeout=60)
        check({p["error"] for t in answer["topics"] for p in t["partitions"]} <= {3, 42}, "deletion from 100,000")


@case("H15", ours=True)
def little_that_asks_for_much(room):
    topic, before = room.topic(partitions=500), room.rss()
    names = [{"name": topic}] * 100_000
    answer = room.ask("Metadata", {"topics": names}, timeout=60)
    check(len(answer["topics"]) == 1, "a topic is described once")
    nodes = [{"type": 4, "name": "1000", "keys": None}] * 100_000
    room.served("the configs of a node, 100,000 times", request("DescribeConfigs", {"resources": nodes}, 1))
    room.grows_at_most(before, 128 * MIB, "answers that are much longer than their questions")


@case("H16")
def acks_out_of_range(room):
    topic = room.topic()
    for acks in (2, -2, 127, 32767):
        room.refuses(f"acks {acks}", topic, batch([b"x"]), 21, acks=acks)
    address = room.cluster.nodes[room.cluster.leaders(topic)[0]]
    bad = request("Produce", produce_body(topic, 0, batch([b"x"], crc=1), acks=0), 1)
    found = room.outcome(bad, address=address)
    check(found == CLOSED, f"acks 0 with a bad batch: {room.short(found)}")
    bad = request("Produce", produce_body("no-such-topic", 0, batch([b"x"]), acks=0), 1)
    found = room.outcome(bad, address=address)
    check(found == CLOSED, f"acks 0 to no topic: {room.short(found)}")
    with room.leader(topic) as connection:
        connection.write(request("Produce", produce_body(topic, 0, batch([b"x"]), acks=0), 1))
        check(room.ask("Metadata", {"topics": []}, connection)["brokers"], "acks 0 gets no answer of its own")
    room.until("what was sent with acks 0 shows", lambda: room.end(topic) == 1)


@case("N13")
def a_thousand_requests_in_one_write(room):
    frames = b"".join(request("Metadata", {"topics": []}, number) for number in range(1000))
    with Connection(room.bootstrap) as connection:
        for at in range(0, len(frames), 7919):
            connection.write(frames[at:at + 7919])
        got = [Reader(connection.read_frame()).integer("i32") for _ in range(1000)]
        check(got == list(range(1000)), "answers come in the order of the requests")


@case("N12")
def answers_that_nobody_reads(room):
    topic = room.topic()
    room.accepts("a large record", topic, batch([bytes(900_000)]))
    before = room.rss()
    connections = [room.leader(topic) for _ in range(20)]
    one = request("Fetch", fetch_body(topic, 0, 0), 1)
    for connection in connections:
        connection.socket.settimeout(0.2)
        try:
            for _ in range(200):
                connection.socket.sendall(one)
        except TimeoutError:
            pass
    room.ask("Metadata", {"topics": []})
    room.grows_at_most(before, 64 * MIB, "20 readers that never read 200 answers of 900 KB each")
    for connection in connections:
        connection.close()


@case("N7")
def a_half_closed_connection_gets_its_answer(room):
    with Connection(room.bootstrap) as connection:
        connection.write(request("Metadata", {"topics": []}, 3))
        connection.socket.shutdown(1)
        check(Reader(connection.read_frame()).integer("i32") == 3, "the answer")


@case("N13")
def a_request_byte_by_byte(room):
    with Connection(room.bootstrap) as connection:
        for byte in request("Metadata", {"topics": []}, 11):
            connection.write(bytes([byte]))
        check(Reader(connection.read_frame()).integer("i32") == 11, "the answer")
