package connectors;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Each task counts: the next number every 20 ms, going on where it was after a restart. */
public final class CountingSource extends SourceConnector {
    private Map<String, String> options;

    @Override
    public void start(Map<String, String> given) {
        options = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Counter.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int tasks) {
        List<Map<String, String>> configs = new ArrayList<>();
        for (int task = 0; task < tasks; task++) {
            Map<String, String> config = new HashMap<>(options);
            config.put("counter", "counter-" + task);
            configs.add(config);
        }
        return configs;
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef().define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where it counts");
    }

    @Override
    public String version() {
        return "1";
    }

    public static final class Counter extends SourceTask {
        private Map<String, String> options;
        private Map<String, String> partition;
        private long next;

        @Override
        public void start(Map<String, String> given) {
            options = given;
            partition = Map.of("counter", given.get("counter"));
            Map<String, Object> known = context.offsetStorageReader().offset(partition);
            next = known == null ? 0 : (Long) known.get("next");
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(20);
            String value = options.get("counter") + "/" + next++;
            return List.of(new SourceRecord(partition, Map.of("next", next), options.get("topic"), Schema.STRING_SCHEMA, value));
        }

        @Override
        public void stop() {
        }

        @Override
        public String version() {
            return "1";
        }
    }
}
