//! A connection to one node, with the versions it serves.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use protocol::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use protocol::{
    ApiKey, Decoder, Encoder, Message, RequestHeader, ResponseHeader, Str, VersionRange,
};

pub(super) struct NodeConnection {
    stream: TcpStream,
    address: String,
    served: BTreeMap<i16, VersionRange>,
    next_correlation_id: i32,
}

impl NodeConnection {
    /// Connects to `HOST:PORT` and learns what is served there.
    pub fn open(address: &str) -> anyhow::Result<NodeConnection> {
        let targets = address
            .to_socket_addrs()
            .with_context(|| format!("'{address}': write HOST:PORT, like 127.0.0.1:9092"))?;
        let mut last = None;
        for target in targets {
            match TcpStream::connect_timeout(&target, CONNECT_TIMEOUT) {
                Ok(stream) => return NodeConnection::start(stream, address),
                Err(why) => last = Some(why),
            }
        }
        match last {
            Some(why) => bail!("cannot connect to {address}: {why}; is a broker running there?"),
            None => bail!("{address} has no address"),
        }
    }

    pub fn connect(host: &str, port: u16) -> anyhow::Result<NodeConnection> {
        let literal_v6 = host.contains(':') && !host.starts_with('[');
        let address =
            if literal_v6 { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        NodeConnection::open(&address)
    }

    fn start(stream: TcpStream, address: &str) -> anyhow::Result<NodeConnection> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        let mut node = NodeConnection {
            stream,
            address: address.to_owned(),
            served: BTreeMap::new(),
            next_correlation_id: 0,
        };
        let request = ApiVersionsRequest {
            client_software_name: Str::from_static("coretide"),
            client_software_version: Str::from_static(env!("CARGO_PKG_VERSION")),
            ..ApiVersionsRequest::default()
        };
        let response: ApiVersionsResponse = node.call_in_version(&request, NEGOTIATION_VERSION)?;
        crate::client::check(response.error_code, None)?;
        for api in response.api_keys {
            node.served
                .insert(api.api_key, VersionRange { min: api.min_version, max: api.max_version });
        }
        Ok(node)
    }

    /// Whether the node serves this API, in whatever versions.
    pub fn serves(&self, api: ApiKey) -> bool {
        self.served.contains_key(&api.number())
    }

    /// Sends a request in the newest version that both sides know and waits for its answer.
    pub fn call<Q: Message, R: Message>(&mut self, request: &Q) -> anyhow::Result<R> {
        let spec = Q::KEY.spec();
        let Some(theirs) = self.served.get(&spec.key.number()) else {
            bail!("{} does not serve {}", self.address, spec.name);
        };
        let version = spec.served.max.min(theirs.max);
        if version < spec.served.min || version < theirs.min {
            bail!(
                "{} serves {} {} to {}, this program knows {} to {}",
                self.address,
                spec.name,
                theirs.min,
                theirs.max,
                spec.served.min,
                spec.served.max
            );
        }
        self.call_in_version(request, version)
    }

    fn call_in_version<Q: Message, R: Message>(
        &mut self,
        request: &Q,
        version: i16,
    ) -> anyhow::Result<R> {
        let exchange = self.exchange(request, version);
        let frame = exchange.with_context(|| format!("{} to {}", Q::KEY.name(), self.address))?;
        decode(frame, Q::KEY, version)
            .with_context(|| format!("{} answered {} unreadably", self.address, Q::KEY.name()))
    }

    fn exchange<Q: Message>(&mut self, request: &Q, version: i16) -> anyhow::Result<Bytes> {
        self.next_correlation_id += 1;
        let header = RequestHeader {
            api_key: Q::KEY.number(),
            api_version: version,
            correlation_id: self.next_correlation_id,
            client_id: Some(Str::from_static("coretide-cli")),
        };
        let mut encoder = Encoder::framed(256);
        header.encode(&mut encoder);
        request.encode(&mut encoder, version);
        for chunk in encoder.finish() {
            self.stream.write_all(&chunk)?;
        }
        let mut size = [0; 4];
        self.stream.read_exact(&mut size)?;
        let size = i32::from_be_bytes(size);
        if !(0..=ANSWER_BYTES_MAX).contains(&size) {
            bail!("an answer of {size} bytes");
        }
        let mut frame = vec![0; size as usize];
        self.stream.read_exact(&mut frame)?;
        Ok(Bytes::from(frame))
    }
}

fn decode<R: Message>(frame: Bytes, key: ApiKey, version: i16) -> anyhow::Result<R> {
    let mut decoder = Decoder::new(frame);
    ResponseHeader::decode(&mut decoder, key, version)?;
    Ok(R::decode(&mut decoder, version)?)
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const ANSWER_BYTES_MAX: i32 = 256 << 20;
/// Every broker since 2.4 answers this version of ApiVersions, older ones in version 0.
const NEGOTIATION_VERSION: i16 = 3;
