package connectors;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Appends values to a file, a line each. */
public final class FileSink extends SinkConnector {
    private Map<String, String> options;

    @Override
    public void start(Map<String, String> given) {
        options = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Appender.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int tasks) {
        return Collections.nCopies(tasks, options);
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef().define("file", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where values go");
    }

    @Override
    public String version() {
        return "1";
    }

    public static final class Appender extends SinkTask {
        private Path file;

        @Override
        public void start(Map<String, String> given) {
            file = Path.of(given.get("file"));
        }

        @Override
        public void put(Collection<SinkRecord> records) {
            StringBuilder lines = new StringBuilder();
            records.forEach(record -> lines.append(record.value()).append('\n'));
            try {
                Files.writeString(file, lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
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
