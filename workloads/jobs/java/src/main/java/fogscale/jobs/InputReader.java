package fogscale.jobs;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.header.Header;
import org.apache.flink.util.Collector;

/** Takes run and number out of the header that the producer writes: `fogscale: run:number`. */
public final class InputReader implements KafkaRecordDeserializationSchema<Input> {
    private static final long serialVersionUID = 1;
    static final String HEADER = "fogscale";
    static final long NO_NUMBER = -1;
    private static final Pattern MARK = Pattern.compile("([^:]*):([0-9]{1,18})");

    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Input> out) {
        Header header = record.headers().lastHeader(HEADER);
        String text = header == null || header.value() == null ? "" : new String(header.value(), StandardCharsets.UTF_8);
        Matcher mark = MARK.matcher(text);
        String run = mark.matches() ? mark.group(1) : "";
        long number = mark.matches() ? Long.parseLong(mark.group(2)) : NO_NUMBER;
        byte[] value = record.value() == null ? new byte[0] : record.value();
        byte[] key = record.key() == null ? new byte[0] : record.key();
        out.collect(new Input(key, value, run, number, record.timestamp(), System.currentTimeMillis()));
    }

    @Override
    public TypeInformation<Input> getProducedType() {
        return TypeInformation.of(Input.class);
    }
}
