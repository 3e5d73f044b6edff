package fogscale.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The three patterns against counting by hand, at one scale and across a rescaling. */
class ClickFraudTest {
    private static final int EVENTS = 6000;
    private static final List<Input> INPUTS = new ArrayList<>();
    private static final Set<String> EXPECTED = new TreeSet<>();

    /** Events of half an hour, some seconds out of order, counted straight from the definition. */
    @BeforeAll
    static void countByHand() {
        Random random = new Random(1);
        Map<String, Set<String>> users = new TreeMap<>();
        Map<String, Set<String>> addresses = new TreeMap<>();
        Map<String, long[]> rates = new TreeMap<>();
        for (int number = 0; number < EVENTS; number++) {
            long second = 1_600_000_000 + number * 1800L / EVENTS + random.nextInt(4);
            String ip = "10.0.0." + random.nextInt(20);
            String user = "user-" + random.nextInt(30);
            boolean clicks = random.nextInt(5) == 0;
            String text = String.format("{\"ip\":\"%s\",\"userID\":\"%s\",\"timestamp\":%d,\"eventType\":\"%s\"}",
                    ip, user, second, clicks ? "click" : "display");
            INPUTS.add(new Input(user.getBytes(), text.getBytes(), "r", number, number, number));
            long windowMs = second / 60 * 60_000;
            users.computeIfAbsent(head(ip, windowMs), key -> new HashSet<>()).add(user);
            addresses.computeIfAbsent(head(user, windowMs), key -> new HashSet<>()).add(ip);
            rates.computeIfAbsent(head(user, windowMs), key -> new long[2])[clicks ? 0 : 1]++;
        }
        users.forEach((head, found) -> EXPECTED.add("usersByAddress " + head + "\"users\":" + found.size() + "}"));
        addresses.forEach((head, found) -> EXPECTED.add("addressesByUser " + head + "\"addresses\":" + found.size() + "}"));
        rates.forEach((head, found) ->
                EXPECTED.add("clickRate " + head + "\"clicks\":" + found[0] + ",\"displays\":" + found[1] + "}"));
    }

    private static String head(String key, long windowMs) {
        return "{\"key\":\"" + key + "\",\"windowMs\":" + windowMs + ",";
    }

    @Test
    void everyWindowIsAsCountedByHand() throws Exception {
        List<Input> inputs = new ArrayList<>(INPUTS);
        inputs.add(new Input(new byte[0], "{\"ip\":7}".getBytes(), "r", EVENTS, 0, 0));
        List<Output> outputs = Pipelines.run(new ClickFraud(), inputs, 3);
        Output fault = outputs.stream().filter(output -> output.by.equals(ClickFraud.PARSE)).findAny().orElseThrow();
        assertEquals("{\"fault\":\"no text 'ip'\"} of " + EVENTS, fault.result + " of " + fault.of.sum);
        outputs.remove(fault);
        assertCountedByHand(outputs);
    }

    @Test
    void stateMovesAlongWhenTheJobIsRescaled(@TempDir Path folder) throws Exception {
        assertCountedByHand(Pipelines.runRescaled(new ClickFraud(), INPUTS, 2, 5, folder.toUri().toString()));
    }

    @Test
    void anEventThatComesLateIsInAnotherResultOfItsWindow() throws Exception {
        List<Input> inputs = new ArrayList<>(INPUTS.subList(1, EVENTS));
        inputs.add(INPUTS.get(0)); // half an hour late
        List<Output> outputs = Pipelines.run(new ClickFraud(), inputs, 2);
        for (ClickFraud.Pattern pattern : ClickFraud.Pattern.values()) {
            assertTallies(outputs, pattern);
        }
    }

    private static void assertCountedByHand(List<Output> outputs) {
        List<String> found = outputs.stream().map(output -> output.by + " " + output.result).sorted().toList();
        assertEquals(String.join("\n", EXPECTED), String.join("\n", found));
        for (ClickFraud.Pattern pattern : ClickFraud.Pattern.values()) {
            assertTallies(outputs, pattern);
        }
    }

    private static void assertTallies(List<Output> outputs, ClickFraud.Pattern pattern) {
        Tally expected = new Tally();
        Tally found = new Tally();
        INPUTS.forEach(input -> expected.add(Tally.of(input)));
        outputs.stream().filter(output -> output.by.equals(pattern.name())).forEach(output -> found.add(output.of));
        assertEquals(List.of(expected.records, expected.sum, expected.mix), List.of(found.records, found.sum, found.mix));
    }
}
