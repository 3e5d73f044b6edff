package fogscale.jobs;

import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.producer.ProducerRecord;

/** Stamps an output with the time at which it goes to Kafka: it is read when the transaction is committed, later. */
public final class OutputWriter implements KafkaRecordSerializationSchema<Output> {
    private static final long serialVersionUID = 1;
    private final String topic;

    public OutputWriter(String topic) {
        this.topic = topic;
    }

    @Override
    public ProducerRecord<byte[], byte[]> serialize(Output output, KafkaSinkContext context, Long timestamp) {
        long nowMs = System.currentTimeMillis();
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, null, nowMs, output.key, output.value(nowMs));
        byte[] header = output.header();
        if (header != null) {
            record.headers().add(InputReader.HEADER, header);
        }
        return record;
    }
}
