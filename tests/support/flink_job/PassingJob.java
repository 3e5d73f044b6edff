import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/**
 * Reads a topic and passes every record through a map that takes some milliseconds. Source, map and sink are not chained:
 * back pressure shows at the source. Arguments: bootstrap, topic, password of the user flink, instances of the map, ms.
 */
public class PassingJob {
    public static void main(String[] arguments) throws Exception {
        int instances = Integer.parseInt(arguments[3]);
        long costMs = Long.parseLong(arguments[4]);
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment.setBufferTimeout(20);
        environment.fromSource(source(arguments), WatermarkStrategy.noWatermarks(), "read").uid("read").setParallelism(1)
                .rebalance()
                .map(new Wait(costMs)).name("map").uid("map").setParallelism(instances).slotSharingGroup("map").disableChaining()
                .sinkTo(new DiscardingSink<String>()).name("write").uid("write").setParallelism(1).slotSharingGroup("default");
        environment.execute("passing");
    }

    private static KafkaSource<String> source(String[] arguments) {
        // The connector has Kafka's classes under names of its own.
        String module = "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.scram.ScramLoginModule";
        Properties access = new Properties();
        access.setProperty("security.protocol", "SASL_PLAINTEXT");
        access.setProperty("sasl.mechanism", "SCRAM-SHA-512");
        access.setProperty("sasl.jaas.config", module + " required username=\"flink\" password=\"" + arguments[2] + "\";");
        return KafkaSource.<String>builder()
                .setBootstrapServers(arguments[0]).setTopics(arguments[1]).setGroupId("fogscale-passing").setProperties(access)
                .setStartingOffsets(OffsetsInitializer.latest()).setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
    }

    private static class Wait implements MapFunction<String, String> {
        private final long costMs;

        Wait(long costMs) {
            this.costMs = costMs;
        }

        @Override
        public String map(String record) throws Exception {
            Thread.sleep(costMs);
            return record;
        }
    }
}
