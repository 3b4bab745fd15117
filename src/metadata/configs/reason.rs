//! Why a key changes nothing, or may not be changed, in the words that an operator reads.

pub(super) const GROUPS: &str = "groups of the consumer protocol are not served yet";
pub(super) const BATCHED_COMMITS: &str = "what groups decide goes to the log at once, with what \
                                          gathered during the last write";
pub(super) const TRANSACTIONS: &str = "transactions are not served yet";
pub(super) const SHARE_GROUPS: &str = "share groups are not served";
pub(super) const STREAMS_GROUPS: &str = "streams groups are not served";
pub(super) const REMOTE_STORAGE: &str = "there is no remote storage; all data is on local disk";
pub(super) const PREALLOCATION: &str = "space is always allocated ahead of writes";
pub(super) const LZ4_LEVEL: &str = "there is one lz4 encoder here, the fast one";
pub(super) const THROTTLED_REPLICATION: &str = "copying between hosts is not throttled";
pub(super) const REPLICATION: &str = "the links between hosts have timings of their own";
pub(super) const THREADS: &str = "there are no thread pools: every core does the work of its \
                                  partitions and connections, see --cores";
pub(super) const PURGATORY: &str = "waiting requests are woken by what they wait for, there is \
                                    nothing to purge";
pub(super) const CHECKPOINTS: &str = "recovery points are written with the data";
pub(super) const JMX: &str = "metrics are Prometheus text at --admin-listen";
pub(super) const PLUGINS: &str = "this is no Java virtual machine, it cannot load classes";
pub(super) const QUOTAS: &str = "quotas are not enforced yet";
pub(super) const AUTHENTICATION: &str = "connections are neither encrypted nor authenticated yet; \
                                         a setting that pretends so would deceive";
pub(super) const TOKENS: &str = "delegation tokens are not served";
pub(super) const LISTENERS: &str = "say it with --listen and --advertise";
pub(super) const DIRECTORIES: &str = "say it with --data-dir";
pub(super) const IDENTITY: &str = "say it with --host-id";
pub(super) const QUORUM: &str = "the metadata quorum has timings and links of its own";
pub(super) const METADATA_LOG: &str = "the metadata log keeps its own size in bounds";
pub(super) const CLEANER_THREADS: &str =
    "every core cleans the partitions that it leads, one at a time";
pub(super) const INTERNAL_CODEC: &str = "internal topics are written uncompressed";
pub(super) const ONE_DIRECTORY: &str = "a host has one data directory";
pub(super) const LEADER_BALANCE: &str = "leaders are balanced by `coretide rebalance`";
pub(super) const SHUTDOWN: &str = "a host that stops always hands over first";
pub(super) const TELEMETRY: &str = "client telemetry is not collected";
pub(super) const INTER_BROKER: &str = "hosts talk over the cluster listener";
pub(super) const SOCKETS: &str = "the system sizes backlogs and buffers of sockets by itself";
pub(super) const DECOMPRESSION: &str = "a batch may become ten times max.message.bytes, and never \
                                        more than 100 MiB";
pub(super) const ELECTIONS: &str = "partitions have one replica each, so nobody else could lead";
