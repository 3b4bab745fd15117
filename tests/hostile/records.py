"""H17 to H35: record batches that lie, swell or repeat themselves."""
import gzip
import time
import zlib

from kit.wire import record, uvarint, varint
from room import Connection, batch, case, check, fetch_body, produce_body, struct

I32_MAX, I64_MAX, I64_MIN = (1 << 31) - 1, (1 << 63) - 1, -(1 << 63)
MIB = 1 << 20
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
TIME = int(time.time() * 1000) - 3_600_000


@case("H17")
def records_that_are_no_single_batch(room):
    topic = room.topic()
    good = batch([b"x"])
    room.refuses("empty records", topic, b"", 87)
    room.refuses("two batches", topic, good + good, 87)
    room.refuses("half a batch", topic, good[:len(good) // 2], 87)
    for magic in (0, 1):
        room.refuses(f"magic {magic}", topic, batch([b"x"], magic=magic), 87)


@case("H17", ours=True)
def null_records(room):
    room.refuses("null records", room.topic(), None, 87)


@case("H18")
def unknown_formats(room):
    topic = room.topic()
    for magic in (3, -1, 127):
        room.refuses(f"magic {magic}", topic, batch([b"x"], magic=magic), 2)
    for size in (1, 11, 12, 13):
        room.refuses(f"{size} bytes", topic, batch([b"x"])[:size], 2, 87)


@case("H19")
def batch_lengths(room):
    topic = room.topic()
    for length in (-1, 0, 13, 48, -(1 << 31)):
        room.refuses(f"batch length {length}", topic, batch([b"x"], length=length), 2)
    room.refuses("a batch longer than the rest", topic, batch([b"x"], length=1000), 87)


@case("H19", ours=True)
def the_longest_batch_length(room):
    room.refuses("batch length 2^31 - 1", room.topic(), batch([b"x"], length=I32_MAX), 2, 87)


@case("H20")
def checksums_off_by_one_bit(room):
    topic = room.topic()
    good = batch([b"some value"])
    for at in range(17, len(good)):
        bad = good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1:]
        room.refuses(f"byte {at} flipped", topic, bad, 2)


@case("H21")
def offsets_and_counts_that_lie(room):
    topic = room.topic()
    for base in (1, -1, I64_MAX):
        room.refuses(f"base offset {base}", topic, batch([b"x"], base=base), 87)
    for last in (-1, 0, 3, I32_MAX):
        room.refuses(f"last offset delta {last} of 3", topic, batch([b"x"] * 3, last_delta=last), 87)
    for count in (0, -1, 2, 4, I32_MAX):
        room.refuses(f"count {count} of 3", topic, batch([b"x"] * 3, count=count), 87)
        if count > 0:
            room.refuses(f"count {count} and delta to match", topic, batch([b"x"] * 3, count=count, last_delta=count - 1), 87)
    before = room.rss()
    room.refuses("a count of 2^31 - 1 without records", topic, batch([], count=I32_MAX, last_delta=I32_MAX - 1), 87)
    room.grows_at_most(before, 4 * MIB, "a count that lies")


@case("H22")
def records_that_lie(room):
    topic = room.topic()
    body = b"\0\0\0" + varint(1) + b"k" + varint(1) + b"v"
    before = room.rss()
    for what, payload in (
            ("a record of length -1", varint(-1) + body + b"\0"), ("a record past the end", varint(1000) + body + b"\0"),
            ("a record of 2^31 - 1", varint(I32_MAX) + body + b"\0"), ("2^31 - 1 headers", varint(len(body) + 5) + body + varint(I32_MAX)),
            ("-1 headers", varint(len(body) + 1) + body + varint(-1)),
            ("a null header key", varint(len(body) + 3) + body + varint(1) + varint(-1) + varint(-1)),
            ("a key longer than its record", varint(6) + b"\0\0\0" + varint(100) + b"kv"),
            ("a record with bytes left over", varint(len(body) + 4) + body + b"\0abc"),
            ("no record at all", b"")):
        room.refuses(what, topic, batch([b""], payload=payload), 87, 2)
    room.grows_at_most(before, 4 * MIB, "records that lie")


@case("H23")
def offset_deltas_at_the_limit(room):
    topic = room.topic()
    room.refuses("last delta 2^31 - 1", topic, batch([b"x"], last_delta=I32_MAX, count=-(1 << 31)), 87)
    room.refuses("count and delta wrap", topic, batch([b"x"], last_delta=-1, count=0), 87)
    payload = record(I32_MAX, b"x")
    room.produce(topic, batch([b"x"], payload=payload))
    check(room.end(topic) <= 1, f"a record delta of 2^31 - 1 moved the end to {room.end(topic)}")


@case("H24")
def timestamps_at_the_limit(room):
    topic = room.topic()
    for stamp in (I64_MAX, int(time.time() * 1000) + 7_200_000):
        room.refuses(f"timestamp {stamp}", topic, batch([b"x"], timestamp=stamp), 32)
    narrow = room.topic(message_timestamp_before_max_ms=1000)
    room.refuses("older than the limit", narrow, batch([b"x"], timestamp=TIME), 32)
    room.accepts("timestamp -1", topic, batch([b"x"], timestamp=-1))
    offset = room.accepts("a largest timestamp that lies", topic, batch([b"x"], timestamp=TIME, max_timestamp=TIME + 10**6))
    check(room.end(topic, timestamp=TIME + 1) == -1, "the time index believes the lie")
    check(room.end(topic, timestamp=TIME) == offset, "the time index has the real timestamp")
    for delta in (I64_MAX, I64_MIN, -1):
        error, _ = room.produce(topic, batch([b"x"], timestamp=TIME, payload=record(0, b"x", time_delta=delta)))
        check(error in (0, 32, 87), f"timestamp delta {delta}: error {error}")
    room.fetch(topic)


@case("H25")
def zstd_before_its_time(room):
    topic = room.topic()
    data = batch([b"x"], attributes=ZSTD, payload=zstd_raw(record(0, b"x")))
    room.refuses("zstd in Produce v6", topic, data, 76, api="Produce6")
    room.accepts("zstd in Produce v9", topic, data)


@case("H25", ours=True)
def unknown_codecs(room):
    topic = room.topic()
    for codec in (5, 6, 7):
        room.refuses(f"codec {codec}", topic, batch([b"x"], attributes=codec), 76)


# ------------------------------------------------------------------------------- frames made by hand
def zstd_raw(data):
    """A frame of one raw block."""
    return bytes.fromhex("28b52ffd") + b"\x00\x58" + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def zstd_run(head, size, window=0x58):
    """A frame that unpacks to `head` and then `size` zeros, from 4 bytes per 128 KiB."""
    out = bytes.fromhex("28b52ffd") + b"\x00" + bytes([window]) + struct.pack("<I", len(head) << 3)[:3] + head
    while size > 0:
        step = min(size, 128 << 10)
        size -= step
        out += struct.pack("<I", step << 3 | 2 | (size <= 0))[:3] + b"\0"
    return out


def lz4_frame(blocks):
    """An LZ4 frame without checksums of content; its header checksum is right."""
    descriptor = b"\x60\x70"
    out = bytes.fromhex("04224d18") + descriptor + bytes([xxh32(descriptor) >> 8 & 0xFF])
    for block, is_raw in blocks:
        out += struct.pack("<I", len(block) | (1 << 31 if is_raw else 0)) + block
    return out + struct.pack("<I", 0)


def lz4_run(size):
    """A block of `size` zeros: one literal, then one match that repeats it."""
    rest = size - 1 - 5 - 4 - 15
    return b"\x1f\0" + b"\1\0" + b"\xff" * (rest // 255) + bytes([rest % 255]) + b"\x50" + bytes(5)


def xxh32(data):
    """XXH32 of fewer than 16 bytes, seed 0."""
    p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    mask, at = 0xFFFFFFFF, 0
    value = p5 + len(data) & mask
    while at + 4 <= len(data):
        value = value + int.from_bytes(data[at:at + 4], "little") * p3 & mask
        value = (value << 17 | value >> 15) * p4 & mask
        at += 4
    for byte in data[at:]:
        value = value + byte * p5 & mask
        value = ((value << 11 | value >> 21) & mask) * p1 & mask
    value = (value ^ value >> 15) * p2 & mask
    value = (value ^ value >> 13) * p3 & mask
    return value ^ value >> 16


def snappy_block(data):
    """Literals only."""
    out = uvarint(len(data))
    for at in range(0, len(data), 60):
        part = data[at:at + 60]
        out += bytes([len(part) - 1 << 2]) + part
    return out


def huge_record(size):
    """How a record with a value of `size` zeros begins."""
    body = b"\0\0\0" + varint(-1) + varint(size)
    return varint(len(body) + size + 1) + body


def gzip_run(head, size):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    out, zeros = packer.compress(head), bytes(MIB)
    for _ in range(size // MIB):
        out += packer.compress(zeros)
    return out + packer.flush()


@case("H26")
def bombs(room):
    topic = room.topic()
    size = 900 * MIB
    head = huge_record(size)
    lz4 = lz4_frame([(head, True)] + [(lz4_run(4 * MIB), False)] * 60)
    for what, codec, payload in (("gzip", GZIP, gzip_run(head, size)), ("lz4", LZ4, lz4),
                                 ("zstd", ZSTD, zstd_run(head, size)),
                                 ("zstd, 10 GiB from 1 record", ZSTD, zstd_run(huge_record(I32_MAX - 100), 10 << 30)),
                                 ("zstd with a window of 2 GiB", ZSTD, zstd_run(head, 64 * MIB, window=0xA8)),
                                 ("snappy that promises 4 GiB", SNAPPY, uvarint((1 << 32) - 1) + b"\0a")):
        bomb(room, topic, what, codec, payload)


def bomb(room, topic, what, codec, payload):
    before, began = room.rss(), time.monotonic()
    room.refuses(f"{what} ({len(payload)} bytes)", topic, batch([b""], attributes=codec, payload=payload), 10, 87, 2)
    room.grows_at_most(before, 48 * MIB, what)
    check(not room.broker or time.monotonic() - began < 5, f"{what} took {time.monotonic() - began:.1f} s")


@case("H26", ours=True)
def many_empty_frames(room):
    topic = room.topic()
    bomb(room, topic, "10,000 empty zstd frames", ZSTD, zstd_raw(b"") * 10000)
    bomb(room, topic, "10,000 empty gzip members", GZIP, gzip.compress(b"") * 10000)


@case("H27")
def framings_of_codecs(room):
    topic = room.topic()
    plain = record(0, b"value")
    block = snappy_block(plain)
    xerial = b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(block)) + block
    room.accepts("snappy with the xerial framing", topic, batch([b""], attributes=SNAPPY, payload=xerial))
    room.accepts("lz4", topic, batch([b""], attributes=LZ4, payload=lz4_frame([(plain, True)])))
    room.accepts("gzip", topic, batch([b""], attributes=GZIP, payload=gzip.compress(plain)))
    check(room.end(topic) == 3, f"the log ends at {room.end(topic)}")


@case("H27")
def raw_snappy(room):
    payload = snappy_block(record(0, b"value"))
    room.accepts("raw snappy", room.topic(), batch([b""], attributes=SNAPPY, payload=payload))


@case("H27", ours=True)
def corrupt_streams(room):
    topic = room.topic()
    plain = record(0, bytes(range(256)) * 4)
    good = {"gzip": (GZIP, gzip.compress(plain)), "lz4": (LZ4, lz4_frame([(plain, True)])), "zstd": (ZSTD, zstd_raw(plain)),
            "snappy": (SNAPPY, snappy_block(plain))}
    for name, (codec, payload) in good.items():
        room.refuses(f"{name}, cut", topic, batch([b""], attributes=codec, payload=payload[:-20]), 2, 87)
        room.refuses(f"{name}, not even begun", topic, batch([b""], attributes=codec, payload=b""), 2, 87)
        room.refuses(f"{name}, something else", topic, batch([b""], attributes=codec, payload=b"\x07" * 50), 2, 87)
    frame = bytearray(lz4_frame([(plain, True)]))
    frame[6] ^= 1
    room.refuses("lz4 with a wrong header checksum", topic, batch([b""], attributes=LZ4, payload=bytes(frame)), 2)


@case("H28")
def batches_that_are_too_large(room):
    room.refuses("above max.message.bytes", room.topic(max_message_bytes=10000), batch([bytes(10000)]), 10)
    topic = room.topic(max_message_bytes=4 * MIB, segment_bytes=MIB)
    room.refuses("above segment.bytes", topic, batch([bytes(MIB + 1)]), 18)
    room.accepts("just below it", topic, batch([bytes(MIB - 100)]))


@case("H29")
def control_batches(room):
    topic = room.topic()
    room.refuses("a control batch", topic, batch([b"x"], attributes=32), 87)
    room.refuses("a commit marker", topic, batch([b"\0\0\0\0\0\0"], attributes=48, producer=5, epoch=0), 87, 53)


@case("H30")
def producer_ids_without_sequence(room):
    topic = room.topic()
    room.refuses("sequence -1", topic, batch([b"x"], producer=9001, epoch=0, sequence=-1), 87)
    room.accepts("a first sequence of 7", topic, batch([b"x"], producer=9002, epoch=0, sequence=7))
    room.accepts("the last sequence", topic, batch([b"x"] * 3, producer=9003, epoch=0, sequence=I32_MAX - 2))
    room.accepts("the sequence after it", topic, batch([b"x"], producer=9003, epoch=0, sequence=0))
    room.accepts("up to a wrap inside a batch", topic, batch([b"x"], producer=9004, epoch=0, sequence=I32_MAX - 1))
    room.accepts("a wrap inside a batch", topic, batch([b"x"] * 3, producer=9004, epoch=0, sequence=I32_MAX))
    room.accepts("the sequence after that", topic, batch([b"x"], producer=9004, epoch=0, sequence=2))


@case("H30", ours=True)
def a_producer_id_without_epoch(room):
    room.refuses("epoch -1", room.topic(), batch([b"x"], producer=9001, epoch=-1, sequence=0), 47, 87)


@case("H31")
def sequences_that_jump_or_repeat(room):
    topic = room.topic()
    sent = [batch([b"x"], producer=77, epoch=3, sequence=number, timestamp=TIME) for number in range(7)]
    offsets = [room.accepts(f"sequence {number}", topic, data) for number, data in enumerate(sent)]
    check(offsets == list(range(7)), f"offsets {offsets}")
    for number in range(2, 7):
        offset = room.accepts(f"sequence {number} again", topic, sent[number])
        check(offset == number, f"sequence {number} again was answered with offset {offset}")
    check(room.end(topic) == 7, "repeats were appended")
    room.refuses("the sixth batch back", topic, sent[1], 45)
    room.refuses("a gap", topic, batch([b"x"], producer=77, epoch=3, sequence=9), 45)
    room.refuses("a stale epoch", topic, batch([b"x"], producer=77, epoch=2, sequence=7), 47)
    room.refuses("a new epoch that does not begin at 0", topic, batch([b"x"], producer=77, epoch=4, sequence=7), 45)
    room.accepts("a new epoch", topic, batch([b"x"], producer=77, epoch=4, sequence=0))
    room.refuses("the old epoch after it", topic, batch([b"x"], producer=77, epoch=3, sequence=7), 47)


@case("H32")
def transactional_batches_without_a_transaction(room):
    data = batch([b"x"], producer=88, epoch=0, sequence=0, attributes=16)
    room.refuses("no transactional id", room.topic(), data, 53)


@case("H34")
def a_partition_twice_in_one_request(room):
    topic = room.topic()
    twice = [{"partition": 0, "records": batch([b"x"])}, {"partition": 0, "records": batch([b"x"])}]
    with room.leader(topic) as connection:
        answer = room.ask("Produce", {**produce_body(topic, 0, b""), "topics": [{"name": topic, "partitions": twice}]},
                          connection, timeout=10)
        check(answer["topics"], "a produce is answered")
        end = room.end(topic)
        check(end in (0, 1, 2), f"the log ends at {end}")
        body = fetch_body(topic, 0, 0)
        body["topics"][0]["partitions"] *= 2
        answer = room.ask("Fetch", body, connection, timeout=10)
        check(all(part["error"] in (0, 42) for each in answer["topics"] for part in each["partitions"]), f"{answer}")


def internal_topics_as(room, client):
    for topic in ("__consumer_offsets", "__transaction_state", "__cluster_metadata"):
        with Connection(room.bootstrap) as connection:
            correlation = connection.send("Produce", produce_body(topic, 0, batch([b"x"])), client)
            answer = connection.receive("Produce", correlation, 10)
        error = answer["topics"][0]["partitions"][0]["error"]
        check(error in (3, 17), f"{topic} as {client}: error {error}")


@case("H35")
def internal_topics(room):
    internal_topics_as(room, "suite")


@case("H35", ours=True)
def internal_topics_by_the_name_that_kafka_exempts(room):
    internal_topics_as(room, "__admin_client")
