import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ElectionNotNeededException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java clients against a broker: every codec there and back, and what an administrator does. BOOTSTRAP RECORDS */
public final class Interop {
    static final int PARTITIONS = 6;
    static final long CREATED = System.currentTimeMillis() - 600_000;
    static String bootstrap;
    static int records;
    static int failed;
    static Admin admin;

    interface Body { void run() throws Exception; }

    public static void main(String[] args) {
        bootstrap = args[0];
        records = Integer.parseInt(args[1]);
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            run(codec + ": there and back", () -> thereAndBack(codec));
        }
        run("keys choose partitions", Interop::keysChoosePartitions);
        run("the life of a topic", Interop::lifeOfATopic);
        run("records are deleted", Interop::recordsAreDeleted);
        run("offsets by time", Interop::offsetsByTime);
        run("the cluster is described", Interop::clusterIsDescribed);
        run("leaders are preferred already", Interop::leadersArePreferred);
        admin.close();
        System.exit(failed == 0 ? 0 : 1);
    }

    static void run(String name, Body body) {
        try {
            body.run();
            System.out.println("ok " + name);
        } catch (Throwable error) {
            failed++;
            Throwable cause = error instanceof ExecutionException && error.getCause() != null ? error.getCause() : error;
            String where = Arrays.stream(error.getStackTrace()).filter(f -> f.getClassName().startsWith("Interop"))
                .findFirst().map(f -> " (line " + f.getLineNumber() + ")").orElse("");
            System.out.println("FAILED " + name + ": " + String.valueOf(cause).replace('\n', ' ') + where);
        }
    }

    static void check(boolean holds, String text) {
        if (!holds) {
            throw new AssertionError(text);
        }
    }

    static void waitUntil(String what, java.util.concurrent.Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (!condition.call()) {
            check(System.nanoTime() < deadline, "not within 60 s: " + what);
            Thread.sleep(100);
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static ProducerRecord<byte[], byte[]> expected(String topic, int i, String codec) {
        byte[] key = i % 97 == 0 ? null : bytes("key-" + i);
        byte[] value = i % 97 == 1 ? null : bytes("value-" + i + "-" + "x".repeat(37 * i % 300));
        var record = new ProducerRecord<>(topic, i % PARTITIONS, CREATED + i, key, value);
        record.headers().add("index", bytes("" + i)).add("codec", bytes(codec)).add("empty", new byte[0]);
        return record;
    }

    static KafkaProducer<byte[], byte[]> producer(String codec) {
        Properties options = new Properties();
        options.put("bootstrap.servers", bootstrap);
        options.put("compression.type", codec);
        options.put("linger.ms", "5");
        return new KafkaProducer<>(options, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer() {
        Properties options = new Properties();
        options.put("bootstrap.servers", bootstrap);
        options.put("enable.auto.commit", "false");
        options.put("auto.offset.reset", "none");
        return new KafkaConsumer<>(options, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static String newTopic(String name, int partitions, Map<String, String> configs) throws Exception {
        String topic = "java-" + name + "-" + UUID.randomUUID().toString().substring(0, 8);
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(configs))).all().get();
        waitUntil("leaders of " + topic, () -> leaders(topic).size() == partitions);
        return topic;
    }

    /** Leaders of the partitions that have one. */
    static List<Node> leaders(String topic) throws Exception {
        try {
            TopicDescription found = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
            return found.partitions().stream().filter(p -> p.leader() != null).map(p -> p.leader()).toList();
        } catch (ExecutionException error) {
            check(error.getCause() instanceof UnknownTopicOrPartitionException, "" + error);
            return List.of();
        }
    }

    static List<TopicPartition> partitions(String topic, int count) {
        return java.util.stream.IntStream.range(0, count).mapToObj(p -> new TopicPartition(topic, p)).toList();
    }

    static void thereAndBack(String codec) throws Exception {
        String topic = newTopic(codec, PARTITIONS, Map.of());
        try (var producer = producer(codec)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < records; i++) {
                sent.add(producer.send(expected(topic, i, codec)));
            }
            producer.flush();
            for (int i = 0; i < records; i++) {
                check(sent.get(i).get().offset() == i / PARTITIONS, "offset of record " + i);
            }
        }
        try (var consumer = consumer()) {
            consumer.assign(partitions(topic, PARTITIONS));
            consumer.seekToBeginning(consumer.assignment());
            long[] nexts = new long[PARTITIONS];
            for (int total = 0; total < records; ) {
                var polled = consumer.poll(Duration.ofSeconds(60));
                check(!polled.isEmpty(), "silence after " + total + " records");
                for (ConsumerRecord<byte[], byte[]> got : polled) {
                    long offset = nexts[got.partition()]++;
                    check(got.offset() == offset, got.partition() + ": offset " + got.offset() + " for " + offset);
                    same(got, expected(topic, (int) (offset * PARTITIONS + got.partition()), codec));
                    total++;
                }
            }
            long ends = consumer.endOffsets(consumer.assignment()).values().stream().mapToLong(e -> e).sum();
            check(ends == records, "the partitions end at " + ends + " in sum");
        }
        admin.deleteTopics(List.of(topic)).all().get();
    }

    static void same(ConsumerRecord<byte[], byte[]> got, ProducerRecord<byte[], byte[]> wanted) {
        String at = " at " + got.partition() + ":" + got.offset();
        check(Arrays.equals(got.key(), wanted.key()), "another key" + at);
        check(Arrays.equals(got.value(), wanted.value()), "another value" + at);
        check(got.timestamp() == wanted.timestamp(), "another timestamp" + at);
        Header[] left = got.headers().toArray();
        Header[] right = wanted.headers().toArray();
        check(Arrays.equals(left, right), "headers " + Arrays.toString(left) + at);
    }

    static void keysChoosePartitions() throws Exception {
        String topic = newTopic("keys", PARTITIONS, Map.of());
        Set<Integer> used = new HashSet<>();
        try (var producer = producer("none")) {
            for (int i = 0; i < 200; i++) {
                byte[] key = bytes("key-" + i % 50);
                used.add(producer.send(new ProducerRecord<>(topic, key, key)).get().partition());
            }
        }
        check(used.size() == PARTITIONS, "keys went to partitions " + used);
        admin.deleteTopics(List.of(topic)).all().get();
    }

    static String configOf(String topic, String name) throws Exception {
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        return config.get(name).value();
    }

    static void lifeOfATopic() throws Exception {
        String topic = newTopic("life", PARTITIONS, Map.of("retention.ms", "3600000"));
        int nodes = admin.describeCluster().nodes().get().size();
        int spread = new HashSet<>(leaders(topic)).size();
        check(spread == Math.min(nodes, PARTITIONS), PARTITIONS + " partitions on " + spread + " of " + nodes + " nodes");
        check(admin.listTopics().names().get().contains(topic), "it is listed");
        check(configOf(topic, "retention.ms").equals("3600000"), "retention.ms as created");
        var set = new AlterConfigOp(new ConfigEntry("max.message.bytes", "65536"), AlterConfigOp.OpType.SET);
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        admin.incrementalAlterConfigs(Map.of(resource, List.<AlterConfigOp>of(set))).all().get();
        waitUntil("the new config", () -> configOf(topic, "max.message.bytes").equals("65536"));
        check(configOf(topic, "retention.ms").equals("3600000"), "the other config is kept");
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(PARTITIONS + 3))).all().get();
        waitUntil("the new partitions", () -> leaders(topic).size() == PARTITIONS + 3);
        try {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            check(false, "the topic was created twice");
        } catch (ExecutionException error) {
            check(error.getCause() instanceof TopicExistsException, "" + error);
        }
        admin.deleteTopics(List.of(topic)).all().get();
        waitUntil("the topic is gone", () -> !admin.listTopics().names().get().contains(topic));
    }

    static void recordsAreDeleted() throws Exception {
        String topic = newTopic("cut", 1, Map.of());
        var partition = new TopicPartition(topic, 0);
        try (var producer = producer("lz4")) {
            for (int i = 0; i < 100; i++) {
                producer.send(new ProducerRecord<>(topic, bytes("" + i)));
            }
        }
        admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(40))).all().get();
        long start = admin.listOffsets(Map.of(partition, OffsetSpec.earliest())).all().get().get(partition).offset();
        check(start == 40, "the log starts at " + start);
        try (var consumer = consumer()) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(consumer.assignment());
            long first = consumer.poll(Duration.ofSeconds(60)).iterator().next().offset();
            check(first == 40, "the first record is at " + first);
        }
        admin.deleteTopics(List.of(topic)).all().get();
    }

    static void offsetsByTime() throws Exception {
        String topic = newTopic("time", 1, Map.of());
        var partition = new TopicPartition(topic, 0);
        try (var producer = producer("gzip")) {
            for (int i = 0; i < 1000; i++) {
                producer.send(new ProducerRecord<>(topic, 0, CREATED + 10 * i, null, bytes("" + i)));
            }
        }
        try (var consumer = consumer()) {
            for (int i : new int[] {0, 1, 499, 500, 999}) {
                OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, CREATED + 10L * i - 5)).get(partition);
                check(found.offset() == i && found.timestamp() == CREATED + 10L * i, i + " was found at " + found);
            }
            check(consumer.offsetsForTimes(Map.of(partition, CREATED + 10_000)).get(partition) == null, "nothing later");
        }
        var newest = admin.listOffsets(Map.of(partition, OffsetSpec.maxTimestamp())).all().get().get(partition);
        check(newest.offset() == 999 && newest.timestamp() == CREATED + 9990, "the newest is at " + newest);
        admin.deleteTopics(List.of(topic)).all().get();
    }

    static void clusterIsDescribed() throws Exception {
        String topic = newTopic("described", 2, Map.of());
        try (var producer = producer("none")) {
            producer.send(new ProducerRecord<>(topic, 0, null, bytes("x"))).get();
        }
        Collection<Node> nodes = admin.describeCluster().nodes().get();
        check(!admin.describeCluster().clusterId().get().isEmpty(), "the cluster has an id");
        check(nodes.contains(admin.describeCluster().controller().get()), "the controller is one of the nodes");
        check(admin.describeFeatures().featureMetadata().get().finalizedFeatures().size() > 0, "features are finalized");
        check(admin.describeMetadataQuorum().quorumInfo().get().voters().size() > 0, "the quorum has voters");
        var logs = admin.describeLogDirs(nodes.stream().map(Node::id).toList()).allDescriptions().get();
        long replicas = logs.values().stream().flatMap(m -> m.values().stream())
            .flatMap(d -> d.replicaInfos().keySet().stream()).filter(p -> p.topic().equals(topic)).count();
        check(replicas == 2, replicas + " replicas are in the log directories");
        var partition = new TopicPartition(topic, 0);
        var writers = admin.describeProducers(List.of(partition)).all().get().get(partition).activeProducers();
        check(writers.size() == 1 && writers.get(0).lastSequence() == 0, "producers " + writers);
        check(admin.listPartitionReassignments().reassignments().get().isEmpty(), "nothing is being reassigned");
        var broker = new ConfigResource(ConfigResource.Type.BROKER, nodes.iterator().next().idString());
        Config config = admin.describeConfigs(List.of(broker)).all().get().get(broker);
        check(config.get("message.max.bytes").value().equals("1048588"), "message.max.bytes of the broker");
        check(!admin.listConfigResources().all().get().isEmpty(), "config resources are listed");
        admin.deleteTopics(List.of(topic)).all().get();
    }

    static void leadersArePreferred() throws Exception {
        String topic = newTopic("elected", 1, Map.of());
        var partition = new TopicPartition(topic, 0);
        var result = admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).partitions().get().get(partition);
        check(result.isPresent() && result.get() instanceof ElectionNotNeededException, "" + result);
        admin.deleteTopics(List.of(topic)).all().get();
    }
}
