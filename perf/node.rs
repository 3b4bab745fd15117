//! A connection to one node, with the versions it serves.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::{Buf, Bytes, BytesMut};
use protocol::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use protocol::{
    ApiKey, Decoder, Encoder, ErrorCode, Message, RequestHeader, ResponseHeader, Str, VersionRange,
};
use runtime::net::{Conn, Reader, Writer};
use runtime::time::{now, within};

/// A connection that was negotiated.
pub struct Node {
    pub frames: Frames,
    pub writer: Writer,
    pub versions: Versions,
    next_correlation_id: i32,
}

impl Node {
    /// Connects and learns what is served.
    pub async fn connect(address: SocketAddr) -> anyhow::Result<Node> {
        let connected = Conn::connect(address, CONNECT_TIMEOUT).await;
        let conn = connected.with_context(|| format!("cannot connect to {address}"))?;
        conn.set_nodelay(true)?;
        let (reader, writer) = conn.split();
        let versions = Versions { address, ranges: BTreeMap::new() };
        let frames = Frames::new(reader);
        let mut node = Node { frames, writer, versions, next_correlation_id: 0 };
        let request = ApiVersionsRequest {
            client_software_name: Str::from_static("coretide-bench"),
            client_software_version: Str::from_static(env!("CARGO_PKG_VERSION")),
            ..ApiVersionsRequest::default()
        };
        let answer: ApiVersionsResponse = node.call_in(&request, NEGOTIATION_VERSION).await?;
        check(answer.error_code).context("ApiVersions")?;
        for api in answer.api_keys {
            let range = VersionRange { min: api.min_version, max: api.max_version };
            node.versions.ranges.insert(api.api_key, range);
        }
        Ok(node)
    }

    /// Sends a request in the newest version that both sides know and waits for its answer.
    pub async fn call<Q: Message, R: Message>(&mut self, request: &Q) -> anyhow::Result<R> {
        let version = self.versions.of(Q::KEY)?;
        self.call_in(request, version).await
    }

    async fn call_in<Q: Message, R: Message>(
        &mut self,
        request: &Q,
        version: i16,
    ) -> anyhow::Result<R> {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        let parts = encode(request, version, correlation_id).finish();
        let name = Q::KEY.name();
        self.writer.send(&parts).await.with_context(|| format!("sending {name}"))?;
        let answered = within(now() + ANSWER_TIMEOUT, self.frames.next()).await;
        let frame = answered.with_context(|| format!("no answer to {name}"))??;
        let (correlated, body) = decode::<R>(frame, version)?;
        ensure!(correlated == correlation_id, "an answer to another request than {name}");
        Ok(body)
    }
}

/// What a node serves.
#[derive(Debug, Clone)]
pub struct Versions {
    address: SocketAddr,
    ranges: BTreeMap<i16, VersionRange>,
}

impl Versions {
    /// The newest version of an API that both sides know.
    pub fn of(&self, key: ApiKey) -> anyhow::Result<i16> {
        let ours = key.spec().served;
        let Some(theirs) = self.ranges.get(&key.number()) else {
            bail!("{} does not serve {}", self.address, key.name());
        };
        let version = ours.max.min(theirs.max);
        ensure!(
            ours.contains(version) && theirs.contains(version),
            "{} serves {} {} to {}, this program knows {} to {}",
            self.address,
            key.name(),
            theirs.min,
            theirs.max,
            ours.min,
            ours.max
        );
        Ok(version)
    }
}

/// A whole request, framed.
pub fn encode<Q: Message>(request: &Q, version: i16, correlation_id: i32) -> Encoder {
    let mut encoder = Encoder::framed(REQUEST_BYTES_GUESS);
    let header = RequestHeader {
        api_key: Q::KEY.number(),
        api_version: version,
        correlation_id,
        client_id: Some(Str::from_static("coretide-bench")),
    };
    header.encode(&mut encoder);
    request.encode(&mut encoder, version);
    encoder
}

/// Correlation id and body of an answer.
pub fn decode<R: Message>(frame: Bytes, version: i16) -> anyhow::Result<(i32, R)> {
    let mut decoder = Decoder::new(frame);
    let header = ResponseHeader::decode(&mut decoder, R::KEY, version)?;
    let body = R::decode(&mut decoder, version).with_context(|| R::KEY.name())?;
    Ok((header.correlation_id, body))
}

/// Fails unless the code means success.
pub fn check(code: ErrorCode) -> anyhow::Result<()> {
    if code != ErrorCode::NONE {
        bail!("{} ({}): {}", code.name(), code.0, code.message());
    }
    Ok(())
}

/// Cuts what arrives into frames. Dropping `next` while it waits loses nothing.
pub struct Frames {
    reader: Reader,
    buffer: BytesMut,
}

impl Frames {
    fn new(reader: Reader) -> Frames {
        Frames { reader, buffer: BytesMut::with_capacity(RECEIVE_BYTES) }
    }

    /// A handle that ends the connection.
    pub fn closer(&self) -> runtime::net::Closer {
        self.reader.closer()
    }

    /// The next frame without its size; an error at the end of the stream.
    pub async fn next(&mut self) -> anyhow::Result<Bytes> {
        loop {
            let wanted = match self.buffer.first_chunk::<4>() {
                None => RECEIVE_BYTES_MIN,
                Some(size) => {
                    let size = i32::from_be_bytes(*size);
                    ensure!((0..=FRAME_BYTES_MAX).contains(&size), "a frame of {size} bytes");
                    let size = size as usize;
                    if self.buffer.len() >= 4 + size {
                        self.buffer.advance(4);
                        return Ok(self.buffer.split_to(size).freeze());
                    }
                    4 + size - self.buffer.len()
                }
            };
            if self.buffer.capacity() - self.buffer.len() < wanted {
                self.buffer.reserve(wanted.max(RECEIVE_BYTES));
            }
            let got = self.reader.read_buf(&mut self.buffer, READ_BYTES_MAX).await?;
            ensure!(got > 0, "the broker closed the connection");
        }
    }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Old enough for every broker since 2019, and flexible.
const NEGOTIATION_VERSION: i16 = 3;
const REQUEST_BYTES_GUESS: usize = 256;
const RECEIVE_BYTES: usize = 64 << 10;
const RECEIVE_BYTES_MIN: usize = 4 << 10;
const READ_BYTES_MAX: usize = 4 << 20;
const FRAME_BYTES_MAX: i32 = 1 << 30;
