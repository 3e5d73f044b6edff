package fogscale.jobs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.KafkaSourceBuilder;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;

/** Both ends of a job. */
final class Kafka {
    // The connector has Kafka's classes under names of its own.
    private static final String LOGIN = "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.scram.ScramLoginModule";

    private Kafka() {}

    static KafkaSource<Input> source(Arguments arguments) {
        KafkaSourceBuilder<Input> source = KafkaSource.<Input>builder()
                .setProperties(access(arguments))
                .setProperty("isolation.level", "read_committed")
                .setBootstrapServers(arguments.text("brokers"))
                .setTopics(arguments.text("input"))
                .setGroupId(arguments.text("group"))
                .setStartingOffsets(start(arguments.choice("from", "earliest", "latest", "committed")))
                .setDeserializer(new InputReader());
        boolean ends = arguments.choice("until", "stopped", "latest").equals("latest");
        return (ends ? source.setBounded(OffsetsInitializer.latest()) : source).build();
    }

    private static OffsetsInitializer start(String from) {
        return switch (from) {
            case "earliest" -> OffsetsInitializer.earliest();
            case "latest" -> OffsetsInitializer.latest();
            default -> OffsetsInitializer.committedOffsets();
        };
    }

    static KafkaSink<Output> sink(Arguments arguments) {
        boolean once = isExactlyOnce(arguments);
        long timeoutMs = 1000 * arguments.number("transaction-timeout-s", 1, 86_400);
        return KafkaSink.<Output>builder()
                .setKafkaProducerConfig(access(arguments))
                .setProperty("transaction.timeout.ms", Long.toString(timeoutMs))
                .setBootstrapServers(arguments.text("brokers"))
                .setRecordSerializer(new OutputWriter(arguments.text("output")))
                .setDeliveryGuarantee(once ? DeliveryGuarantee.EXACTLY_ONCE : DeliveryGuarantee.AT_LEAST_ONCE)
                .setTransactionalIdPrefix(arguments.text("transactions"))
                .build();
    }

    static boolean isExactlyOnce(Arguments arguments) {
        return arguments.choice("guarantee", "exactly-once", "at-least-once").equals("exactly-once");
    }

    private static Properties access(Arguments arguments) {
        Properties access = new Properties();
        String user = arguments.text("kafka-user");
        if (!user.isEmpty()) {
            String password = password(arguments).replace("\\", "\\\\").replace("\"", "\\\"");
            access.setProperty("security.protocol", "SASL_PLAINTEXT");
            access.setProperty("sasl.mechanism", "SCRAM-SHA-512");
            access.setProperty("sasl.jaas.config",
                    LOGIN + " required username=\"" + user + "\" password=\"" + password + "\";");
        }
        arguments.kafka().forEach(access::setProperty);
        return access;
    }

    private static String password(Arguments arguments) {
        String file = arguments.text("kafka-password-file");
        String variable = arguments.text("kafka-password-env");
        if (!file.isEmpty()) {
            return textOf(file);
        }
        String password = variable.isEmpty() ? arguments.text("kafka-password") : System.getenv(variable);
        if (password == null || password.isEmpty()) {
            throw new BadArgument(variable.isEmpty()
                    ? "--kafka-user needs --kafka-password-file, --kafka-password-env or --kafka-password"
                    : "--kafka-password-env: the variable " + variable + " is not set where the job is started");
        }
        return password;
    }

    private static String textOf(String file) {
        try {
            String text = Files.readString(Path.of(file)).strip();
            if (!text.isEmpty()) {
                return text;
            }
        } catch (IOException | InvalidPathException missing) {
            // Told below, as is an empty file.
        }
        throw new BadArgument("--kafka-password-file: no password in " + file + " where the job is started");
    }
}
