package fogscale.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The bytes of the output topic; Python reads the same lines in its own tests. */
class OutputTest {
    @Test
    void outputsAreWrittenAsPythonReadsThem() throws Exception {
        List<String> expected = Files.readAllLines(Path.of("src/test/resources/outputs.jsonl"));
        Input one = input("a \"run\"", 7, 1000, 1005);
        assertEquals(expected.get(0), text(Output.of(one, "map", "{\"attraction\":\"Times Square\"}").value(1010)));

        Tally tally = new Tally();
        tally.add(Tally.of(input("r1", 3, 900, 950)));
        tally.add(Tally.of(input("r1", 5_000_000_000L, 1200, 1300)));
        tally.add(Tally.of(input("r1", 4, 1000, 1005)));
        assertEquals(expected.get(1), text(Output.of("user", "clickRate", tally, "[1,2]").value(1400)));

        Output fault = Output.fault(input("r1", 0, 1000, 1005), "map", "no number 'pickupLon'");
        assertEquals(expected.get(2), text(fault.value(1010)));
    }

    @Test
    void anOutputOfOneRecordCarriesTheProducersHeader() {
        assertEquals("r1:12", text(Output.of(input("r1", 12, 0, 0), "map", "{}").header()));
        assertNull(Output.of("key", "map", Tally.of(input("r", 12, 0, 0)), "{}").header());
        assertNull(Output.of(input("", InputReader.NO_NUMBER, 0, 0), "map", "{}").header());
    }

    static Input input(String run, long number, long dueMs, long readMs) {
        return new Input("key".getBytes(), "{}".getBytes(), run, number, dueMs, readMs);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
