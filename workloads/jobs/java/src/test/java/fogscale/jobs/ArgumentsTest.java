package fogscale.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What is told on a command line, and what is wrong with it in one line. */
class ArgumentsTest {
    private static final List<Option> OPTIONS = List.of(
            Option.needed("brokers", "Kafka, as host:port"), new Option("layout", "split", ""), new Option("cost-us", "0", ""));

    private static Arguments read(String... words) {
        return Arguments.read(OPTIONS, true, words);
    }

    private static String refused(Runnable attempt) {
        String message = assertThrows(BadArgument.class, attempt::run).getMessage();
        assertTrue(message.lines().count() == 1, message);
        return message;
    }

    @Test
    void whatIsNotGivenHasItsUsualValue() {
        Arguments arguments = read("--brokers", "b:1", "--cost-us", "7", "--kafka.security.protocol", "SSL");
        assertEquals("split", arguments.text("layout"));
        assertEquals(7, arguments.number("cost-us", 0, 10));
        assertEquals(Map.of("security.protocol", "SSL"), arguments.kafka());
    }

    @Test
    void mistakesAreNamedWithWhatWasMeant() {
        assertEquals("--brokers is missing: Kafka, as host:port", refused(() -> read()));
        assertEquals("unknown setting 'layuot': did you mean 'layout'?", refused(() -> read("--layuot", "fog")));
        assertEquals("unknown setting 'colour'; known are brokers, cost-us, layout", refused(() -> read("--colour", "red")));
        assertEquals("'brokers' is not a setting: write --name value", refused(() -> read("brokers", "b:1")));
        assertEquals("--layout: unknown value 'splt': did you mean 'split'?",
                refused(() -> read("--brokers", "b", "--layout", "splt").choice("layout", "split", "fog")));
        assertEquals("--cost-us must be a whole number from 0 to 10, not '-1'",
                refused(() -> read("--brokers", "b", "--cost-us", "-1").number("cost-us", 0, 10)));
    }

    @Test
    void anOperatorHasTheInstancesThatAreAskedFor() {
        assertEquals("--parallelism: unknown operator 'mop': did you mean 'map'?", refused(() -> stage("mop=2")));
        assertEquals("--parallelism: write a number, or operator=number with commas between, not 'map'",
                refused(() -> stage("map")));
        assertEquals("--parallelism map must be a whole number from 1 to 128, not '129'", refused(() -> stage("map=129")));
        assertEquals("--parallelism must be a whole number from 1 to 128, not '0'", refused(() -> stage("0")));
        stage("map=3,source=2");
    }

    private static Stage stage(String parallelism) {
        Job job = new Taxi();
        return new Stage(job, Arguments.read(Runner.options(job), true, "--brokers", "b:1", "--parallelism", parallelism));
    }
}
