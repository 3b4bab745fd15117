"""Just enough of Kafka's protocol to be a producer, a reader and a nuisance: blocking sockets, chosen versions.

A message is described by a list of (name, kind); a kind is a primitive's name, a list of fields, which means an array
of structures, or a tuple of fields, which means one (in answers only). `CALLS` holds the versions spoken here, one per API. Bodies are dicts; a missing field is empty.
Record batches are encoded and checked by `batch` and `batches`, uncompressed; nothing is hidden from the caller.
"""
import socket
import struct
import time
import uuid

INTEGERS = {"i8": ">b", "i16": ">h", "i32": ">i", "i64": ">q", "u16": ">H", "u32": ">I"}
SIZES = {kind: struct.calcsize(layout) for kind, layout in INTEGERS.items()}
EMPTY = {"str": "", "nstr": None, "bytes": b"", "nbytes": None, "bool": False, "uuid": bytes(16)}
FRAME_BYTES_MAX = 256 << 20


class Malformed(Exception):
    """An answer that does not follow its description."""


class Closed(Exception):
    """The other side ended the connection."""


class Silent(Exception):
    """No answer in time."""


# ------------------------------------------------------------------------------------------- crc
def _table():
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        yield crc


TABLE = list(_table())


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    table = TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Shift:
    """The effect on a CRC-32C of `length` bytes that follow, so that a long filler is summed once and not per batch."""

    def __init__(self, length):
        self.columns = [crc32c(bytes(length), 1 << bit ^ 0xFFFFFFFF) ^ 0xFFFFFFFF for bit in range(32)]

    def join(self, head_crc, tail_crc):
        """The checksum of head + tail."""
        shifted = 0
        for bit in range(32):
            if head_crc >> bit & 1:
                shifted ^= self.columns[bit]
        return shifted ^ tail_crc


# ------------------------------------------------------------------------------------------- values
def uvarint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value):
    return uvarint((value << 1 ^ value >> 63) & 0xFFFFFFFFFFFFFFFF)


class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        if count < 0 or self.at + count > len(self.data):
            raise Malformed(f"{count} bytes wanted at {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count:self.at]

    def left(self):
        return len(self.data) - self.at

    def integer(self, kind):
        return struct.unpack(INTEGERS[kind], self.take(SIZES[kind]))[0]

    def uvarint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def varint(self):
        value = self.uvarint()
        return value >> 1 ^ -(value & 1)


def encode(fields, body, flexible):
    out = bytearray()
    for name, kind in fields:
        value = body.get(name, [] if isinstance(kind, list) else EMPTY.get(kind, 0))
        if isinstance(kind, list) or kind.startswith("[]"):
            size = -1 if value is None else len(value)
            out += uvarint(size + 1) if flexible else struct.pack(">i", size)
            for each in value or ():
                out += encode(kind, each, flexible) if isinstance(kind, list) else primitive(kind[2:], each, flexible)
        else:
            out += primitive(kind, value, flexible)
    return bytes(out) + (b"\0" if flexible else b"")


def primitive(kind, value, flexible):
    if kind in INTEGERS:
        return struct.pack(INTEGERS[kind], value)
    if kind == "bool":
        return b"\1" if value else b"\0"
    if kind == "uuid":
        return value
    data = value.encode() if isinstance(value, str) else value
    size = -1 if data is None else len(data)
    if flexible:
        return uvarint(size + 1) + (data or b"")
    return struct.pack(">h" if kind.endswith("str") else ">i", size) + (data or b"")


def decode(fields, reader, flexible):
    body = {}
    for name, kind in fields:
        if isinstance(kind, Nullable) and reader.integer("i8") < 0:
            body[name] = None
        elif isinstance(kind, tuple):
            body[name] = decode(kind, reader, flexible)
        elif isinstance(kind, list) or kind.startswith("[]"):
            size = reader.uvarint() - 1 if flexible else reader.integer("i32")
            if size > reader.left():
                raise Malformed(f"{name}: an array of {size} in {reader.left()} bytes")
            one = (lambda: decode(kind, reader, flexible)) if isinstance(kind, list) else (
                lambda: scalar(kind[2:], reader, flexible))
            body[name] = None if size < 0 else [one() for _ in range(size)]
        else:
            body[name] = scalar(kind, reader, flexible)
    for _ in range(reader.uvarint() if flexible else 0):
        tag = reader.uvarint()
        body.setdefault("tags", {})[tag] = reader.take(reader.uvarint())
    return body


def scalar(kind, reader, flexible):
    if kind in INTEGERS:
        return reader.integer(kind)
    if kind == "bool":
        return reader.take(1) != b"\0"
    if kind == "uuid":
        return bytes(reader.take(16))
    size = reader.uvarint() - 1 if flexible else reader.integer("i16" if kind.endswith("str") else "i32")
    if size < 0:
        return None
    data = bytes(reader.take(size))
    return data.decode(errors="replace") if kind.endswith("str") else data


# ------------------------------------------------------------------------------------------- calls
class Nullable(tuple):
    """A structure that may be missing, in answers."""


class Call:
    def __init__(self, key, version, flexible, request, response):
        self.key, self.version, self.flexible = key, version, flexible
        self.request, self.response = request, response


CONFIGS = [("name", "str"), ("value", "nstr")]
OWNED = (("topics", [("id", "uuid"), ("name", "str"), ("partitions", "[]i32")]),)

CALLS = {
    "ApiVersions": Call(18, 3, True, [("software", "str"), ("software_version", "str")],
                        [("error", "i16"), ("keys", [("key", "i16"), ("low", "i16"), ("high", "i16")]),
                         ("throttle", "i32")]),
    "Metadata": Call(3, 12, True,
                     [("topics", [("id", "uuid"), ("name", "nstr")]), ("create", "bool"), ("operations", "bool")],
                     [("throttle", "i32"),
                      ("brokers", [("node", "i32"), ("host", "str"), ("port", "i32"), ("rack", "nstr")]),
                      ("cluster", "nstr"), ("controller", "i32"),
                      ("topics", [("error", "i16"), ("name", "nstr"), ("id", "uuid"), ("internal", "bool"),
                                  ("partitions", [("error", "i16"), ("partition", "i32"), ("leader", "i32"),
                                                  ("epoch", "i32"), ("replicas", "[]i32"), ("isr", "[]i32"),
                                                  ("offline", "[]i32")]),
                                  ("operations", "i32")])]),
    "CreateTopics": Call(19, 7, True,
                         [("topics", [("name", "str"), ("partitions", "i32"), ("factor", "i16"),
                                      ("assignments", [("partition", "i32"), ("brokers", "[]i32")]),
                                      ("configs", CONFIGS)]),
                          ("timeout", "i32"), ("dry", "bool")],
                         [("throttle", "i32"),
                          ("topics", [("name", "str"), ("id", "uuid"), ("error", "i16"), ("message", "nstr"),
                                      ("partitions", "i32"), ("factor", "i16"),
                                      ("configs", [("name", "str"), ("value", "nstr"), ("read_only", "bool"),
                                                   ("source", "i8"), ("sensitive", "bool")])])]),
    "DeleteTopics": Call(20, 6, True, [("topics", [("name", "nstr"), ("id", "uuid")]), ("timeout", "i32")],
                         [("throttle", "i32"), ("topics", [("name", "nstr"), ("id", "uuid"), ("error", "i16"),
                                                           ("message", "nstr")])]),
    "Produce": Call(0, 9, True,
                    [("transaction", "nstr"), ("acks", "i16"), ("timeout", "i32"),
                     ("topics", [("name", "str"), ("partitions", [("partition", "i32"), ("records", "nbytes")])])],
                    [("topics", [("name", "str"),
                                 ("partitions", [("partition", "i32"), ("error", "i16"), ("offset", "i64"),
                                                 ("append_time", "i64"), ("log_start", "i64"),
                                                 ("bad", [("index", "i32"), ("message", "nstr")]),
                                                 ("message", "nstr")])]),
                     ("throttle", "i32")]),
    "Fetch": Call(1, 12, True,
                  [("replica", "i32"), ("max_wait", "i32"), ("min_bytes", "i32"), ("max_bytes", "i32"),
                   ("isolation", "i8"), ("session", "i32"), ("epoch", "i32"),
                   ("topics", [("name", "str"),
                               ("partitions", [("partition", "i32"), ("leader_epoch", "i32"), ("offset", "i64"),
                                               ("fetched_epoch", "i32"), ("log_start", "i64"),
                                               ("max_bytes", "i32")])]),
                   ("forgotten", [("name", "str"), ("partitions", "[]i32")]), ("rack", "str")],
                  [("throttle", "i32"), ("error", "i16"), ("session", "i32"),
                   ("topics", [("name", "str"),
                               ("partitions", [("partition", "i32"), ("error", "i16"), ("high_watermark", "i64"),
                                               ("last_stable", "i64"), ("log_start", "i64"),
                                               ("aborted", [("producer", "i64"), ("first", "i64")]),
                                               ("preferred", "i32"), ("records", "nbytes")])])]),
    "ListOffsets": Call(2, 6, True,
                        [("replica", "i32"), ("isolation", "i8"),
                         ("topics", [("name", "str"), ("partitions", [("partition", "i32"), ("epoch", "i32"),
                                                                      ("timestamp", "i64")])])],
                        [("throttle", "i32"),
                         ("topics", [("name", "str"), ("partitions", [("partition", "i32"), ("error", "i16"),
                                                                      ("timestamp", "i64"), ("offset", "i64"),
                                                                      ("epoch", "i32")])])]),
    "InitProducerId": Call(22, 4, True, [("transaction", "nstr"), ("timeout", "i32"), ("producer", "i64"),
                                         ("epoch", "i16")],
                           [("throttle", "i32"), ("error", "i16"), ("producer", "i64"), ("epoch", "i16")]),
    "DeleteRecords": Call(21, 2, True,
                          [("topics", [("name", "str"), ("partitions", [("partition", "i32"), ("offset", "i64")])]),
                           ("timeout", "i32")],
                          [("throttle", "i32"),
                           ("topics", [("name", "str"), ("partitions", [("partition", "i32"), ("low", "i64"),
                                                                        ("error", "i16")])])]),
    "OffsetForLeaderEpoch": Call(23, 4, True,
                                 [("replica", "i32"),
                                  ("topics", [("name", "str"), ("partitions", [("partition", "i32"),
                                                                               ("current", "i32"),
                                                                               ("epoch", "i32")])])],
                                 [("throttle", "i32"),
                                  ("topics", [("name", "str"), ("partitions", [("error", "i16"),
                                                                               ("partition", "i32"),
                                                                               ("epoch", "i32"), ("end", "i64")])])]),
    "DescribeProducers": Call(61, 0, True, [("topics", [("name", "str"), ("partitions", "[]i32")])],
                              [("throttle", "i32"),
                               ("topics", [("name", "str"),
                                           ("partitions", [("partition", "i32"), ("error", "i16"),
                                                           ("message", "nstr"),
                                                           ("producers", [("producer", "i64"), ("epoch", "i32"),
                                                                          ("sequence", "i32"), ("time", "i64"),
                                                                          ("coordinator", "i32"),
                                                                          ("start", "i64")])])])]),
    "DescribeConfigs": Call(32, 4, True,
                            [("resources", [("type", "i8"), ("name", "str"), ("keys", "[]str")]),
                             ("synonyms", "bool"), ("documentation", "bool")],
                            [("throttle", "i32"),
                             ("results", [("error", "i16"), ("message", "nstr"), ("type", "i8"), ("name", "str"),
                                          ("configs", [("name", "str"), ("value", "nstr"), ("read_only", "bool"),
                                                       ("source", "i8"), ("sensitive", "bool"),
                                                       ("synonyms", [("name", "str"), ("value", "nstr"),
                                                                     ("source", "i8")]),
                                                       ("type", "i8"), ("documentation", "nstr")])])]),
    "FindCoordinator": Call(10, 4, True, [("kind", "i8"), ("keys", "[]str")],
                            [("throttle", "i32"),
                             ("coordinators", [("key", "str"), ("node", "i32"), ("host", "str"), ("port", "i32"),
                                               ("error", "i16"), ("message", "nstr")])]),
    "JoinGroup": Call(11, 9, True,
                      [("group", "str"), ("session", "i32"), ("rebalance", "i32"), ("member", "str"), ("instance", "nstr"),
                       ("type", "str"), ("protocols", [("name", "str"), ("metadata", "bytes")]), ("reason", "nstr")],
                      [("throttle", "i32"), ("error", "i16"), ("generation", "i32"), ("type", "nstr"), ("protocol", "nstr"),
                       ("leader", "str"), ("skip", "bool"), ("member", "str"),
                       ("members", [("member", "str"), ("instance", "nstr"), ("metadata", "bytes")])]),
    "SyncGroup": Call(14, 5, True,
                      [("group", "str"), ("generation", "i32"), ("member", "str"), ("instance", "nstr"), ("type", "nstr"),
                       ("protocol", "nstr"), ("assignments", [("member", "str"), ("assignment", "bytes")])],
                      [("throttle", "i32"), ("error", "i16"), ("type", "nstr"), ("protocol", "nstr"),
                       ("assignment", "bytes")]),
    "Heartbeat": Call(12, 4, True, [("group", "str"), ("generation", "i32"), ("member", "str"), ("instance", "nstr")],
                      [("throttle", "i32"), ("error", "i16")]),
    "LeaveGroup": Call(13, 5, True,
                       [("group", "str"), ("members", [("member", "str"), ("instance", "nstr"), ("reason", "nstr")])],
                       [("throttle", "i32"), ("error", "i16"),
                        ("members", [("member", "str"), ("instance", "nstr"), ("error", "i16")])]),
    "OffsetCommit": Call(8, 9, True,
                         [("group", "str"), ("generation", "i32"), ("member", "str"), ("instance", "nstr"),
                          ("topics", [("name", "str"), ("partitions", [("partition", "i32"), ("offset", "i64"),
                                                                       ("epoch", "i32"), ("metadata", "nstr")])])],
                         [("throttle", "i32"),
                          ("topics", [("name", "str"), ("partitions", [("partition", "i32"), ("error", "i16")])])]),
    "OffsetFetch": Call(9, 9, True,
                        [("groups", [("group", "str"), ("member", "nstr"), ("epoch", "i32"),
                                     ("topics", [("name", "str"), ("partitions", "[]i32")])]), ("stable", "bool")],
                        [("throttle", "i32"),
                         ("groups", [("group", "str"),
                                     ("topics", [("name", "str"),
                                                 ("partitions", [("partition", "i32"), ("offset", "i64"), ("epoch", "i32"),
                                                                 ("metadata", "nstr"), ("error", "i16")])]),
                                     ("error", "i16")])]),
    "DescribeGroups": Call(15, 5, True, [("groups", "[]str"), ("operations", "bool")],
                           [("throttle", "i32"),
                            ("groups", [("error", "i16"), ("group", "str"), ("state", "str"), ("type", "str"),
                                        ("protocol", "str"),
                                        ("members", [("member", "str"), ("instance", "nstr"), ("client", "str"),
                                                     ("host", "str"), ("metadata", "bytes"), ("assignment", "bytes")]),
                                        ("operations", "i32")])]),
    "ConsumerGroupDescribe": Call(69, 0, True, [("groups", "[]str"), ("operations", "bool")],
                                  [("throttle", "i32"),
                                   ("groups", [("error", "i16"), ("message", "nstr"), ("group", "str"), ("state", "str"),
                                               ("epoch", "i32"), ("assignment_epoch", "i32"), ("assignor", "str"),
                                               ("members", [("member", "str"), ("instance", "nstr"), ("rack", "nstr"),
                                                            ("epoch", "i32"), ("client", "str"), ("host", "str"),
                                                            ("topics", "[]str"), ("pattern", "nstr"),
                                                            ("assignment", OWNED), ("target", OWNED)]),
                                               ("operations", "i32")])]),
    "AlterPartitionReassignments": Call(45, 1, True,
                                        [("timeout", "i32"), ("resize", "bool"),
                                         ("topics", [("name", "str"), ("partitions", [("partition", "i32"),
                                                                                      ("replicas", "[]i32")])])],
                                        [("throttle", "i32"), ("resize", "bool"), ("error", "i16"), ("message", "nstr"),
                                         ("topics", [("name", "str"), ("partitions", [("partition", "i32"),
                                                                                      ("error", "i16"),
                                                                                      ("message", "nstr")])])]),
    "ConsumerGroupHeartbeat": Call(68, 1, True,
                                   [("group", "str"), ("member", "str"), ("epoch", "i32"), ("instance", "nstr"),
                                    ("rack", "nstr"), ("rebalance", "i32"), ("topics", "[]str"), ("pattern", "nstr"),
                                    ("assignor", "nstr"), ("owned", [("id", "uuid"), ("partitions", "[]i32")])],
                                   [("throttle", "i32"), ("error", "i16"), ("message", "nstr"), ("member", "nstr"),
                                    ("epoch", "i32"), ("interval", "i32"),
                                    ("assignment", Nullable([("topics", [("id", "uuid"), ("partitions", "[]i32")])]))]),
    "IncrementalAlterConfigs": Call(44, 1, True,
                                    [("resources", [("type", "i8"), ("name", "str"),
                                                    ("configs", [("name", "str"), ("operation", "i8"),
                                                                 ("value", "nstr")])]), ("dry", "bool")],
                                    [("throttle", "i32"), ("results", [("error", "i16"), ("message", "nstr"),
                                                                       ("type", "i8"), ("name", "str")])]),
}


def header(key, version, correlation, client="suite", flexible=True):
    name = client if client is None or isinstance(client, bytes) else client.encode()
    size = struct.pack(">h", -1 if name is None else len(name))
    return struct.pack(">hhi", key, version, correlation) + size + (name or b"") + (b"\0" if flexible else b"")


def frame(payload):
    return struct.pack(">i", len(payload)) + payload


def request(api, body, correlation, client="suite"):
    """A whole frame of this API in its chosen version."""
    call = CALLS[api]
    head = header(call.key, call.version, correlation, client, call.flexible)
    return frame(head + encode(call.request, body, call.flexible))


class Connection:
    def __init__(self, address, timeout=30.0):
        host, port = address.rsplit(":", 1) if isinstance(address, str) else address
        self.socket = socket.create_connection((host, int(port)), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation, self.buffer = 0, bytearray()

    def write(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed(str(error)) from None

    def read_frame(self, timeout=None):
        """One whole frame without its length. Raises Closed or Silent."""
        self.socket.settimeout(timeout or 30.0)
        try:
            self.fill(4)
            size = struct.unpack(">i", self.buffer[:4])[0]
            if not 0 <= size <= FRAME_BYTES_MAX:
                raise Malformed(f"a frame of {size} bytes")
            self.fill(4 + size)
        except (TimeoutError, socket.timeout):
            raise Silent(f"{len(self.buffer)} bytes so far") from None
        except ConnectionResetError:
            raise Closed("reset") from None
        payload = bytes(self.buffer[4:4 + size])
        del self.buffer[:4 + size]
        return payload

    def fill(self, size):
        while len(self.buffer) < size:
            chunk = self.socket.recv(max(65536, min(size - len(self.buffer), 1 << 20)))
            if not chunk:
                raise Closed("end of stream")
            self.buffer += chunk

    def send(self, api, body, client="suite"):
        """Sends without waiting; returns the correlation id."""
        self.correlation += 1
        self.write(request(api, body, self.correlation, client))
        return self.correlation

    def receive(self, api, correlation=None, timeout=None):
        """The next answer, as an answer to this API."""
        reader = Reader(self.read_frame(timeout))
        got = reader.integer("i32")
        if correlation is not None and got != correlation:
            raise Malformed(f"answer to {got} where {correlation} was due")
        call = CALLS[api]
        if call.flexible and api != "ApiVersions":
            for _ in range(reader.uvarint()):
                reader.uvarint()
                reader.take(reader.uvarint())
        return decode(call.response, reader, call.flexible)

    def ask(self, api, body, timeout=None):
        return self.receive(api, self.send(api, body), timeout)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# ------------------------------------------------------------------------------------------- records
def record(index, value, key=None, headers=(), time_delta=0):
    body = b"\0" + varint(time_delta) + varint(index)
    for part in (key, value):
        body += varint(-1) if part is None else varint(len(part)) + part
    body += varint(len(headers))
    for name, content in headers:
        body += varint(len(name)) + name + (varint(-1) if content is None else varint(len(content)) + content)
    return varint(len(body)) + body


def batch(values, base=0, producer=-1, epoch=-1, sequence=-1, timestamp=0, attributes=0, magic=2, crc=None,
          last_delta=None, count=None, max_timestamp=None, length=None, leader_epoch=-1, payload=None):
    """A record batch of these values; every field of its head can be made to lie."""
    if payload is None:
        payload = b"".join(record(index, each) for index, each in enumerate(values))
    number = len(values)
    body = struct.pack(">hiqqqhii", attributes, number - 1 if last_delta is None else last_delta, timestamp,
                       timestamp if max_timestamp is None else max_timestamp, producer, epoch, sequence,
                       number if count is None else count) + payload
    checksum = crc32c(body) if crc is None else crc
    size = 9 + len(body) if length is None else length
    return struct.pack(">qiibI", base, size, leader_epoch, magic, checksum) + body


class Batch:
    """The head of a batch on the wire, its payload, and whether the checksum holds."""

    def __init__(self, data):
        (self.base, self.length, self.leader_epoch, self.magic, self.crc, self.attributes, self.last_delta,
         self.base_timestamp, self.max_timestamp, self.producer, self.epoch, self.sequence,
         self.count) = struct.unpack(">qiibIhiqqqhii", data[:61])
        self.data, self.payload = data, data[61:]

    def crc_holds(self):
        return crc32c(self.data[21:]) == self.crc

    def records(self):
        """(offset, key, value, headers) of an uncompressed batch."""
        reader = Reader(self.payload)
        for _ in range(self.count):
            end = reader.varint() + reader.at
            reader.take(1)
            reader.varint()
            offset = self.base + reader.varint()
            key = self.part(reader)
            value = self.part(reader)
            headers = [(self.part(reader), self.part(reader)) for _ in range(reader.varint())]
            if reader.at != end:
                raise Malformed(f"record at offset {offset} ends at {reader.at}, not {end}")
            yield offset, key, value, headers

    @staticmethod
    def part(reader):
        size = reader.varint()
        return None if size < 0 else bytes(reader.take(size))


def batches(data):
    """Whole batches of an answer's records; a last one that was cut is left out."""
    at = 0
    while data and len(data) - at >= 61:
        size = 12 + struct.unpack(">i", data[at + 8:at + 12])[0]
        if size < 61 or at + size > len(data):
            break
        yield Batch(data[at:at + size])
        at += size


# ------------------------------------------------------------------------------------------- cluster
class Cluster:
    """Bootstrap address, the nodes behind it, and a connection to each."""

    def __init__(self, bootstrap, timeout=30.0):
        self.bootstrap, self.timeout, self.connections = bootstrap, timeout, {}
        self.refresh()

    def refresh(self, topics=None):
        body = None if topics is None else [{"name": name} for name in topics]
        answer = self.any().ask("Metadata", {"topics": [] if topics is None else body})
        self.nodes = {each["node"]: f"{each['host']}:{each['port']}" for each in answer["brokers"]}
        return answer

    def any(self):
        return self.to_address(self.bootstrap)

    def to_address(self, address):
        if address not in self.connections:
            self.connections[address] = Connection(address, self.timeout)
        return self.connections[address]

    def to(self, node):
        return self.to_address(self.nodes[node])

    def leaders(self, topic):
        """Partition -> leader's node id; raises when the topic is not served."""
        answer = self.refresh([topic])["topics"][0]
        if answer["error"]:
            raise Malformed(f"metadata of {topic}: error {answer['error']}")
        return {each["partition"]: each["leader"] for each in answer["partitions"]}

    def create(self, topic, partitions, configs=()):
        answer = self.any().ask("CreateTopics", {
            "topics": [{"name": topic, "partitions": partitions, "factor": 1,
                        "configs": [{"name": name, "value": value} for name, value in dict(configs).items()]}],
            "timeout": 30000})["topics"][0]
        return answer

    def create_ready(self, topic, partitions, configs=(), within=60):
        """Creates a topic and returns its leaders once each of them serves its partitions."""
        answer = self.create(topic, partitions, configs)
        if answer["error"]:
            raise Malformed(f"creation of {topic}: error {answer['error']}, {answer['message']}")
        deadline = time.monotonic() + within
        while True:
            try:
                leaders = self.leaders(topic)
                if len(leaders) == partitions and all(self.end(topic, each, leaders) >= 0 for each in leaders):
                    return leaders
            except (Malformed, KeyError) as error:
                if time.monotonic() > deadline:
                    raise Malformed(f"{topic} is not served after {within} s: {error}") from None
            time.sleep(0.05)

    def end(self, topic, partition, leaders, timestamp=-1):
        """ListOffsets of one partition, by default its end."""
        answer = self.to(leaders[partition]).ask("ListOffsets", {"replica": -1, "topics": [
            {"name": topic, "partitions": [{"partition": partition, "epoch": -1, "timestamp": timestamp}]}]})
        part = answer["topics"][0]["partitions"][0]
        if part["error"]:
            raise Malformed(f"offsets of {topic}-{partition}: error {part['error']}")
        return part["offset"]

    def delete(self, topic):
        answer = self.any().ask("DeleteTopics", {"topics": [{"name": topic}], "timeout": 30000})
        return answer["topics"][0]["error"]

    def close(self):
        for each in self.connections.values():
            each.close()
        self.connections = {}


def produce_body(topic, partition, records, acks=-1, timeout=30000):
    return {"acks": acks, "timeout": timeout,
            "topics": [{"name": topic, "partitions": [{"partition": partition, "records": records}]}]}


def fetch_body(topic, partition, offset, max_wait=500, max_bytes=8 << 20, **more):
    part = {"partition": partition, "leader_epoch": -1, "offset": offset, "fetched_epoch": -1, "log_start": -1,
            "max_bytes": max_bytes}
    part.update({key: more.pop(key) for key in list(more) if key in part})
    body = {"replica": -1, "max_wait": max_wait, "min_bytes": 1, "max_bytes": max_bytes, "epoch": -1,
            "topics": [{"name": topic, "partitions": [part]}]}
    body.update(more)
    return body


def new_name(prefix):
    return f"{prefix}-{uuid.uuid4().hex[:8]}"
