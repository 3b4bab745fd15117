//! The broker's identity, the metadata quorum and replication.

use super::super::key::{ConfigKey, Kind, Rule};
use super::super::reason;

pub(super) static CLUSTER_KEYS: &[ConfigKey] = &[
    ConfigKey::new("auto.leader.rebalance.enable", Kind::Boolean, "true")
        .high()
        .inert(reason::LEADER_BALANCE)
        .doc("Whether leadership goes back to the preferred replica by itself."),
    ConfigKey::new("broker.heartbeat.interval.ms", Kind::Int, "2000")
        .inert(reason::QUORUM)
        .doc("How often a broker tells the controller that it lives."),
    ConfigKey::new("broker.id", Kind::Int, "-1")
        .high()
        .refused(reason::IDENTITY)
        .doc("The node id, by its old name."),
    ConfigKey::unset("broker.rack", Kind::Text).doc(
        "The availability zone of this host; replicas are spread over zones and clients \
             may read nearby.",
    ),
    ConfigKey::new("broker.session.timeout.ms", Kind::Int, "9000")
        .inert(reason::QUORUM)
        .doc("After how long without a heartbeat a broker is taken for dead."),
    ConfigKey::new("controlled.shutdown.enable", Kind::Boolean, "true")
        .inert(reason::SHUTDOWN)
        .doc("Whether a broker that stops hands its leadership over first."),
    ConfigKey::new("controller.listener.names", Kind::List, "")
        .high()
        .inert(reason::QUORUM)
        .doc("The listeners of the controller."),
    ConfigKey::new("controller.quorum.append.linger.ms", Kind::Int, "25")
        .at_least(0)
        .inert(reason::QUORUM)
        .doc("How long the controller collects records before it writes them."),
    ConfigKey::new("controller.quorum.auto.join.enable", Kind::Boolean, "false")
        .low()
        .inert(reason::QUORUM)
        .doc("Whether a new controller joins the quorum by itself."),
    ConfigKey::new("controller.quorum.bootstrap.servers", Kind::List, "")
        .high()
        .inert(reason::QUORUM)
        .doc("Where a host looks for the metadata quorum."),
    ConfigKey::new("controller.quorum.election.backoff.max.ms", Kind::Int, "1000")
        .at_least(0)
        .high()
        .inert(reason::QUORUM)
        .doc("The longest rest between two elections."),
    ConfigKey::new("controller.quorum.election.timeout.ms", Kind::Int, "1000")
        .at_least(0)
        .high()
        .inert(reason::QUORUM)
        .doc("How long a host waits for votes before it asks again."),
    ConfigKey::new("controller.quorum.fetch.max.bytes", Kind::Int, "1048576")
        .at_least(1)
        .low()
        .inert(reason::QUORUM)
        .doc("How much of the metadata log is copied at once."),
    ConfigKey::new("controller.quorum.fetch.snapshot.max.bytes", Kind::Int, "1048576")
        .at_least(1)
        .low()
        .inert(reason::QUORUM)
        .doc("How much of a metadata snapshot is copied at once."),
    ConfigKey::new("controller.quorum.fetch.timeout.ms", Kind::Int, "2000")
        .at_least(0)
        .high()
        .inert(reason::QUORUM)
        .doc("After how long without the leader a host asks for an election."),
    ConfigKey::new("controller.quorum.request.timeout.ms", Kind::Int, "2000")
        .at_least(0)
        .inert(reason::QUORUM)
        .doc("How long members of the quorum wait for each other's answers."),
    ConfigKey::new("controller.quorum.retry.backoff.ms", Kind::Int, "20")
        .at_least(0)
        .low()
        .inert(reason::QUORUM)
        .doc("How long they rest before they ask again."),
    ConfigKey::new("controller.quorum.voters", Kind::List, "")
        .high()
        .inert(reason::QUORUM)
        .doc("The voters of the metadata quorum."),
    ConfigKey::new("controller.socket.timeout.ms", Kind::Int, "30000")
        .inert(reason::QUORUM)
        .doc("How long a broker waits for the controller's answer."),
    ConfigKey::new("follower.fetch.last.tiered.offset.enable", Kind::Boolean, "false")
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("Whether an empty follower begins behind what is in remote storage."),
    ConfigKey::new("initial.broker.registration.timeout.ms", Kind::Int, "60000")
        .inert(reason::QUORUM)
        .doc("How long a broker tries to register before it ends."),
    ConfigKey::unset("inter.broker.listener.name", Kind::Text)
        .inert(reason::INTER_BROKER)
        .doc("The listener over which brokers talk to each other."),
    ConfigKey::new("leader.imbalance.check.interval.seconds", Kind::Long, "300")
        .at_least(1)
        .high()
        .inert(reason::LEADER_BALANCE)
        .doc("How often the balance of leaders is looked at."),
    ConfigKey::unset("metadata.log.dir", Kind::Text)
        .high()
        .refused(reason::DIRECTORIES)
        .doc("Where the metadata log is."),
    ConfigKey::new("metadata.log.max.record.bytes.between.snapshots", Kind::Long, "20971520")
        .at_least(1)
        .high()
        .inert(reason::METADATA_LOG)
        .doc("After how many bytes of metadata records the next snapshot is taken."),
    ConfigKey::new("metadata.log.max.snapshot.interval.ms", Kind::Long, "3600000")
        .at_least(0)
        .high()
        .inert(reason::METADATA_LOG)
        .doc("After how long the next metadata snapshot is taken."),
    ConfigKey::new("metadata.log.segment.bytes", Kind::Int, "1073741824")
        .at_least(8_388_608)
        .high()
        .inert(reason::METADATA_LOG)
        .doc("How large segments of the metadata log grow."),
    ConfigKey::new("metadata.log.segment.ms", Kind::Long, "604800000")
        .high()
        .inert(reason::METADATA_LOG)
        .doc("After how long the next segment of the metadata log begins."),
    ConfigKey::new("metadata.max.idle.interval.ms", Kind::Int, "500")
        .at_least(0)
        .low()
        .inert(reason::METADATA_LOG)
        .doc("How often an idle controller writes a record that says nothing."),
    ConfigKey::new("metadata.max.retention.bytes", Kind::Long, "104857600")
        .high()
        .inert(reason::METADATA_LOG)
        .doc("How large the metadata log and its snapshots may be before old ones go."),
    ConfigKey::new("metadata.max.retention.ms", Kind::Long, "604800000")
        .high()
        .inert(reason::METADATA_LOG)
        .doc("How long old metadata is kept."),
    ConfigKey::unset("node.id", Kind::Int)
        .at_least(0)
        .high()
        .refused(reason::IDENTITY)
        .doc("The number under which clients know this node."),
    ConfigKey::unset("num.replica.alter.log.dirs.threads", Kind::Int)
        .high()
        .inert(reason::ONE_DIRECTORY)
        .doc("How many threads move replicas between directories."),
    ConfigKey::new("num.replica.fetchers", Kind::Int, "1")
        .at_least(1)
        .high()
        .cluster_wide()
        .inert(reason::THREADS)
        .doc("How many threads copy from each other broker."),
    ConfigKey::new("process.roles", Kind::List, "")
        .rule(Rule::EachOneOf(&["broker", "controller"]))
        .high()
        .inert(reason::QUORUM)
        .doc("Whether this process is a broker, a controller or both."),
    ConfigKey::new("replica.fetch.backoff.ms", Kind::Int, "1000")
        .at_least(0)
        .inert(reason::REPLICATION)
        .doc("How long a follower rests after an error."),
    ConfigKey::new("replica.fetch.max.bytes", Kind::Int, "1048576")
        .at_least(0)
        .inert(reason::REPLICATION)
        .doc("How much a follower asks for per partition."),
    ConfigKey::new("replica.fetch.min.bytes", Kind::Int, "1")
        .high()
        .inert(reason::REPLICATION)
        .doc("How much has to be there before a follower is answered at once."),
    ConfigKey::new("replica.fetch.response.max.bytes", Kind::Int, "10485760")
        .at_least(0)
        .inert(reason::REPLICATION)
        .doc("How much a follower asks for in all."),
    ConfigKey::new("replica.fetch.wait.max.ms", Kind::Int, "500")
        .high()
        .inert(reason::REPLICATION)
        .doc("How long a follower's request may wait."),
    ConfigKey::new("replica.high.watermark.checkpoint.interval.ms", Kind::Long, "5000")
        .high()
        .inert(reason::CHECKPOINTS)
        .doc("How often high watermarks are written down."),
    ConfigKey::new("replica.lag.time.max.ms", Kind::Long, "30000")
        .high()
        .inert(reason::REPLICATION)
        .doc("How long a follower may be behind before it is no longer in sync."),
    ConfigKey::unset("replica.selector.class", Kind::Text)
        .refused(reason::PLUGINS)
        .doc("A class that chooses the replica from which a consumer reads."),
    ConfigKey::new("replica.socket.receive.buffer.bytes", Kind::Int, "65536")
        .high()
        .inert(reason::REPLICATION)
        .doc("The receive buffer of a follower's socket."),
    ConfigKey::new("replica.socket.timeout.ms", Kind::Int, "30000")
        .high()
        .inert(reason::REPLICATION)
        .doc("How long a follower waits for an answer."),
    ConfigKey::new("replication.quota.window.num", Kind::Int, "11")
        .at_least(1)
        .low()
        .inert(reason::THROTTLED_REPLICATION)
        .doc("Over how many samples throttled replication is measured."),
    ConfigKey::new("replication.quota.window.size.seconds", Kind::Int, "1")
        .at_least(1)
        .low()
        .inert(reason::THROTTLED_REPLICATION)
        .doc("How long such a sample is."),
];
