package fogscale.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.functions.util.ListCollector;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.Test;

/** The producer's header, and records of other senders. */
class InputReaderTest {
    private static Input read(byte[] header) {
        ConsumerRecord<byte[], byte[]> record = new ConsumerRecord<>("input", 0, 0, null, "value".getBytes());
        record.headers().add("fogscale", header);
        List<Input> found = new ArrayList<>();
        new InputReader().deserialize(record, new ListCollector<>(found));
        return found.get(0);
    }

    @Test
    void runAndNumberStandInTheHeader() {
        Input input = read("taxi-1:12".getBytes());
        assertEquals("taxi-1 12 value", input.run + " " + input.number + " " + new String(input.value));
        assertEquals(0, input.key.length);
    }

    @Test
    void anotherSendersRecordHasNoNumber() {
        for (byte[] header : new byte[][] {null, {}, "12".getBytes(), "r:".getBytes(), "r:x".getBytes(), "r:-1".getBytes()}) {
            Input input = read(header);
            assertEquals(" -1", input.run + " " + input.number);
        }
    }
}
