import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/** Counts words at least once, until stdin ends: BOOTSTRAP APPLICATION INPUT OUTPUT STATE_FOLDER. Says `running` once. */
public final class WordCount {
    public static void main(String[] args) throws Exception {
        Properties options = new Properties();
        options.put("bootstrap.servers", args[0]);
        options.put("application.id", args[1]);
        options.put("state.dir", args[4]);
        options.put("num.stream.threads", "2");
        options.put("commit.interval.ms", "200");
        options.put("statestore.cache.max.bytes", "0");
        options.put("replication.factor", "1");
        options.put("consumer.session.timeout.ms", "6000");
        options.put("consumer.heartbeat.interval.ms", "1000");
        options.put("auto.offset.reset", "earliest");

        var strings = Serdes.String();
        var builder = new StreamsBuilder();
        builder.stream(args[2], Consumed.with(strings, strings))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", strings, strings))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(strings).withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(count -> "" + count)
            .to(args[3], Produced.with(strings, strings));

        var streams = new KafkaStreams(builder.build(), options);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("running");
            }
        });
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        var lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
        }
        System.exit(streams.close(Duration.ofSeconds(30)) ? 0 : 1);
    }
}
