package fogscale.jobs;

import java.util.List;
import java.util.regex.Pattern;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/**
 * Tells a testbed's JobManager on which TaskManagers jobs may run from now on. Flink has no setting for that, but it calls the main
 * method of a class like this one inside the JobManager when it is asked for the plan of a job (POST /jars/:id/plan). The names are
 * left there for the classes of roles/flink/files/placement. The plan itself is of no use.
 */
public final class Nodes {
    static final String PROPERTY = "fogscale.nodes"; // as in fogscale.placement.NodesInUse
    private static final Pattern NAMES = Pattern.compile("[A-Za-z0-9._-]+(,[A-Za-z0-9._-]+)*");
    private static final List<Option> OPTIONS = List.of(Option.needed("use", "TaskManagers with commas between, or: all"));

    private Nodes() {}

    public static void main(String[] words) throws Exception {
        use(Arguments.read(OPTIONS, false, words).text("use"));
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment.fromSequence(1, 1).sinkTo(new DiscardingSink<>());
        environment.execute("nodes");
    }

    static void use(String names) {
        if (names.equals("all")) {
            System.clearProperty(PROPERTY);
            return;
        }
        if (!NAMES.matcher(names).matches()) {
            throw new BadArgument("--use: write names of TaskManagers with commas between, or all, not '" + names + "'");
        }
        System.setProperty(PROPERTY, names);
    }
}
