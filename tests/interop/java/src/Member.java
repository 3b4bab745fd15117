import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** One member of a group: BOOTSTRAP GROUP TOPIC NAME STRATEGY SESSION_MS POLL_MS; what it says is told in groups.py. */
public final class Member implements ConsumerRebalanceListener {
    final BlockingQueue<String> commands = new LinkedBlockingQueue<>();
    final KafkaConsumer<String, String> consumer;
    final String topic;
    final boolean matches;
    boolean uncommitted;

    Member(String[] args) {
        topic = args[2];
        matches = args[4].endsWith("pattern");
        Properties options = new Properties();
        options.put("bootstrap.servers", args[0]);
        options.put("group.id", args[1]);
        options.put("client.id", args[3]);
        options.put("auto.offset.reset", "earliest");
        options.put("enable.auto.commit", "false");
        options.put("max.poll.interval.ms", args[6]);
        if (args[4].startsWith("consumer")) {
            options.put("group.protocol", "consumer");
        } else {
            options.put("group.protocol", "classic");
            options.put("session.timeout.ms", args[5]);
            options.put("heartbeat.interval.ms", Integer.parseInt(args[5]) / 6);
            options.put("partition.assignment.strategy", switch (args[4]) {
                case "range" -> "org.apache.kafka.clients.consumer.RangeAssignor";
                case "sticky" -> "org.apache.kafka.clients.consumer.StickyAssignor";
                case "cooperative-sticky" -> "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";
                default -> throw new IllegalArgumentException(args[4]);
            });
        }
        consumer = new KafkaConsumer<>(options, new StringDeserializer(), new StringDeserializer());
    }

    public static void main(String[] args) throws Exception {
        new Member(args).live();
    }

    void live() throws InterruptedException {
        Thread reader = new Thread(this::listen);
        reader.setDaemon(true);
        reader.start();
        if (matches) {
            // The broker finds the topic (KIP-848): any letter may be its last.
            String pattern = topic.substring(0, topic.length() - 1) + ".";
            consumer.subscribe(new SubscriptionPattern(pattern), this);
        } else {
            consumer.subscribe(List.of(topic), this);
        }
        for (String command = ""; !"stop".equals(command); command = commands.poll()) {
            if ("stall".equals(command)) {
                say("stalled");
                commands.take();
                say("woken");
            }
            var records = consumer.poll(Duration.ofMillis(100));
            for (var record : records) {
                say("got", record.partition() + " " + record.offset() + " " + record.value());
            }
            if (!records.isEmpty() || uncommitted) {
                commit();
            }
        }
        consumer.close();
        say("left");
    }

    /** What a rebalance keeps from being committed is tried again, as far as it is still ours then. */
    void commit() {
        try {
            consumer.commitSync();
            uncommitted = false;
        } catch (RebalanceInProgressException | CommitFailedException refused) {
            uncommitted = true;
        }
    }

    void listen() {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).lines();
        lines.forEach(commands::add);
        commands.add("stop");
    }

    static synchronized void say(String event, String... rest) {
        System.out.println(event + " " + System.currentTimeMillis() + (rest.length > 0 ? " " + rest[0] : ""));
    }

    static String numbers(Collection<TopicPartition> partitions) {
        return partitions.stream().map(each -> "" + each.partition()).collect(Collectors.joining(","));
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        say("assigned", consumer.groupMetadata().generationId() + " " + numbers(partitions));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        say("revoked", numbers(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        say("lost", numbers(partitions));
    }
}
