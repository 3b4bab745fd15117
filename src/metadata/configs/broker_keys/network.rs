//! Connections, requests, quotas and metrics.

use super::super::key::{ConfigKey, Kind, Rule};
use super::super::reason;

pub(super) static NETWORK_KEYS: &[ConfigKey] = &[
    ConfigKey::unset("advertised.listeners", Kind::List)
        .high()
        .refused(reason::LISTENERS)
        .doc("What clients are told to connect to."),
    ConfigKey::new("alter.log.dirs.replication.quota.window.num", Kind::Int, "11")
        .at_least(1)
        .low()
        .inert(reason::ONE_DIRECTORY)
        .doc("Over how many samples the moving of replicas between directories is measured."),
    ConfigKey::new("alter.log.dirs.replication.quota.window.size.seconds", Kind::Int, "1")
        .at_least(1)
        .low()
        .inert(reason::ONE_DIRECTORY)
        .doc("How long such a sample is."),
    ConfigKey::unset("client.quota.callback.class", Kind::Class)
        .low()
        .refused(reason::PLUGINS)
        .doc("A class that decides which quota applies to a request."),
    ConfigKey::new("config.providers", Kind::List, "")
        .low()
        .cluster_wide()
        .refused(reason::PLUGINS)
        .doc("Classes that look up values named in configs."),
    ConfigKey::new("connections.max.idle.ms", Kind::Long, "600000")
        .doc("After how long without a request a connection is closed."),
    ConfigKey::new("controller.quota.window.num", Kind::Int, "11")
        .at_least(1)
        .low()
        .inert(reason::QUOTAS)
        .doc("Over how many samples the rate of topic changes is measured."),
    ConfigKey::new("controller.quota.window.size.seconds", Kind::Int, "1")
        .at_least(1)
        .low()
        .inert(reason::QUOTAS)
        .doc("How long such a sample is."),
    ConfigKey::unset("early.start.listeners", Kind::List)
        .high()
        .inert(reason::LISTENERS)
        .doc("Listeners that are open before the broker can authorize requests."),
    ConfigKey::new("fetch.max.bytes", Kind::Int, "57671680")
        .at_least(1024)
        .doc("The most that one fetch may return, whatever the client asks for."),
    ConfigKey::new("kafka.metrics.polling.interval.secs", Kind::Int, "10")
        .at_least(1)
        .low()
        .inert(reason::JMX)
        .doc("How often the reporters of kafka.metrics.reporters are called."),
    ConfigKey::new("kafka.metrics.reporters", Kind::List, "")
        .low()
        .inert(reason::JMX)
        .doc("Classes that report metrics of an old kind."),
    ConfigKey::new(
        "listener.security.protocol.map",
        Kind::Text,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    )
    .low()
    .per_node()
    .refused(reason::AUTHENTICATION)
    .doc("Which security each listener name stands for."),
    ConfigKey::new("listeners", Kind::List, "PLAINTEXT://:9092")
        .high()
        .per_node()
        .refused(reason::LISTENERS)
        .doc("Where the broker listens."),
    ConfigKey::new("max.connection.creation.rate", Kind::Int, "2147483647")
        .at_least(0)
        .cluster_wide()
        .inert(reason::QUOTAS)
        .doc("How many connections a second the host accepts."),
    ConfigKey::new("max.connections", Kind::Int, "2147483647")
        .at_least(0)
        .cluster_wide()
        .doc("How many connections the host keeps open at most."),
    ConfigKey::new("max.connections.per.ip", Kind::Int, "2147483647")
        .at_least(0)
        .cluster_wide()
        .doc("How many connections one address may have open."),
    ConfigKey::new("max.connections.per.ip.overrides", Kind::Text, "")
        .rule(Rule::AddressLimits)
        .cluster_wide()
        .doc("Other limits for some addresses: address:count, separated by commas."),
    ConfigKey::new("max.incremental.fetch.session.cache.slots", Kind::Int, "1000")
        .at_least(0)
        .doc("How many fetch sessions a host remembers; further fetches have none."),
    ConfigKey::new("max.request.partition.size.limit", Kind::Int, "2000")
        .at_least(1)
        .doc("How many partitions one DescribeTopicPartitions answer lists at most."),
    ConfigKey::new("metric.reporters", Kind::List, "org.apache.kafka.common.metrics.JmxReporter")
        .low()
        .cluster_wide()
        .inert(reason::JMX)
        .doc("Classes that report metrics."),
    ConfigKey::new("metrics.num.samples", Kind::Int, "2")
        .at_least(1)
        .low()
        .inert(reason::JMX)
        .doc("Over how many samples metrics are computed."),
    ConfigKey::new("metrics.recording.level", Kind::Text, "INFO")
        .low()
        .inert(reason::JMX)
        .doc("How detailed metrics are."),
    ConfigKey::new("metrics.sample.window.ms", Kind::Long, "30000")
        .at_least(1)
        .low()
        .inert(reason::JMX)
        .doc("How long such a sample is."),
    ConfigKey::new("num.io.threads", Kind::Int, "8")
        .at_least(1)
        .high()
        .cluster_wide()
        .inert(reason::THREADS)
        .doc("How many threads process requests."),
    ConfigKey::new("num.network.threads", Kind::Int, "3")
        .at_least(1)
        .high()
        .cluster_wide()
        .inert(reason::THREADS)
        .doc("How many threads serve the connections of a listener."),
    ConfigKey::new("queued.max.request.bytes", Kind::Long, "-1")
        .inert(reason::THREADS)
        .doc("How many bytes of requests may wait to be processed."),
    ConfigKey::new("queued.max.requests", Kind::Int, "500").at_least(1).high().doc(
        "How many requests of a connection may be in progress before no more are read \
             from it; 128 at most.",
    ),
    ConfigKey::new("quota.window.num", Kind::Int, "11")
        .at_least(1)
        .low()
        .inert(reason::QUOTAS)
        .doc("Over how many samples the use of a client quota is measured."),
    ConfigKey::new("quota.window.size.seconds", Kind::Int, "1")
        .at_least(1)
        .low()
        .inert(reason::QUOTAS)
        .doc("How long such a sample is."),
    ConfigKey::new("request.timeout.ms", Kind::Int, "30000")
        .high()
        .inert(reason::INTER_BROKER)
        .doc("How long a broker waits for another one's answer."),
    ConfigKey::new("socket.connection.setup.timeout.max.ms", Kind::Long, "30000")
        .inert(reason::INTER_BROKER)
        .doc("The longest that a broker waits for a connection to another one."),
    ConfigKey::new("socket.connection.setup.timeout.ms", Kind::Long, "10000")
        .inert(reason::INTER_BROKER)
        .doc("How long a broker at first waits for a connection to another one."),
    ConfigKey::new("socket.listen.backlog.size", Kind::Int, "50")
        .at_least(1)
        .inert(reason::SOCKETS)
        .doc("How many connections may wait to be accepted."),
    ConfigKey::new("socket.receive.buffer.bytes", Kind::Int, "102400")
        .high()
        .inert(reason::SOCKETS)
        .doc("The receive buffer of a client's socket; -1 leaves it to the system."),
    ConfigKey::new("socket.request.max.bytes", Kind::Int, "104857600")
        .at_least(1)
        .high()
        .doc("The largest request that is read; a longer one closes its connection."),
    ConfigKey::new("socket.send.buffer.bytes", Kind::Int, "102400")
        .high()
        .inert(reason::SOCKETS)
        .doc("The send buffer of a client's socket; -1 leaves it to the system."),
    ConfigKey::new("telemetry.max.bytes", Kind::Int, "1048576")
        .at_least(1)
        .low()
        .inert(reason::TELEMETRY)
        .doc("The largest set of metrics that a client may push."),
];
