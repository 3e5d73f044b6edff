package fogscale.jobs;

import java.util.Arrays;
import java.util.List;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.jobgraph.JobEdge;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.JobVertex;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * The jobs on a command line, in a Flink inside this process: `Main taxi --brokers …`. Also tells how a job would look on a
 * cluster: `Main plan taxi --brokers …`. A cluster never runs this class, which ends its process.
 */
public final class Main {
    private static final List<Job> JOBS = List.of(new Taxi(), new Lookup(), new Images(), new ClickFraud(), new TopRoutes());

    private Main() {}

    public static void main(String[] words) throws Exception {
        try {
            start(words);
        } catch (BadArgument error) {
            System.err.println("error: " + error.getMessage());
            System.exit(2);
        }
    }

    private static void start(String... words) throws Exception {
        boolean plans = words.length > 0 && words[0].equals("plan");
        int first = plans ? 1 : 0;
        if (words.length <= first || words[first].equals("--help")) {
            System.out.println("usage: [plan] JOB --name value …; --help after a job's name tells its settings. Jobs:");
            JOBS.forEach(job -> System.out.println("  " + job.name() + ": " + job.summary()));
            return;
        }
        Job job = job(words[first]);
        String[] rest = Arrays.copyOfRange(words, first + 1, words.length);
        if (plans) {
            System.out.print(plan(job, rest));
        } else {
            Runner.run(job, here(), rest);
        }
    }

    /** Operators of different groups share no slot: there are enough for all of them. */
    static StreamExecutionEnvironment here() {
        Configuration configuration = new Configuration();
        configuration.set(TaskManagerOptions.NUM_TASK_SLOTS, Stage.MAX_PARALLELISM);
        configuration.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(64));
        return StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
    }

    static Job job(String name) {
        List<String> names = JOBS.stream().map(Job::name).toList();
        if (!names.contains(name)) {
            throw new BadArgument(Arguments.unknown("job", name, names));
        }
        return JOBS.get(names.indexOf(name));
    }

    /** One line of JSON for each vertex, upstream first. */
    static String plan(Job job, String... words) {
        StreamExecutionEnvironment environment = here();
        Runner.compose(job, environment, words);
        JobGraph graph = environment.getStreamGraph().getJobGraph();
        StringBuilder lines = new StringBuilder();
        for (JobVertex vertex : graph.getVerticesSortedTopologicallyFromSources()) {
            List<String> upstream = vertex.getInputs().stream().map(JobEdge::getSource)
                    .map(input -> Json.quoted(input.getProducer().getName())).toList();
            lines.append(String.format("{\"name\":%s,\"group\":%s,\"parallelism\":%d,\"maxParallelism\":%d,\"upstream\":%s}%n",
                    Json.quoted(vertex.getName()), Json.quoted(vertex.getSlotSharingGroup().getSlotSharingGroupName()),
                    vertex.getParallelism(), vertex.getMaxParallelism(), upstream));
        }
        return lines.toString();
    }
}
