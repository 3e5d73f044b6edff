package fogscale.jobs;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** From a command line to a job that runs. */
public final class Runner {
    private static final long SHORTEST_CHECKPOINT_MS = 10; // that Flink takes

    private Runner() {}

    /** As Flink calls a job's entry class, inside the JobManager: what is wrong is thrown, and never ends the process. */
    public static void run(Job job, String... words) throws Exception {
        run(job, StreamExecutionEnvironment.getExecutionEnvironment(), words);
    }

    static void run(Job job, StreamExecutionEnvironment environment, String... words) throws Exception {
        if (Arguments.askForHelp(words)) {
            System.out.print(help(job));
            return;
        }
        compose(job, environment, words);
        environment.execute(job.name());
    }

    static void compose(Job job, StreamExecutionEnvironment environment, String... words) {
        Arguments arguments = Arguments.read(options(job), true, words);
        prepare(environment, arguments);
        Stage stage = new Stage(job, arguments);
        DataStream<Input> records = stage.place(Stage.SOURCE,
                environment.fromSource(Kafka.source(arguments), job.time(arguments), Stage.SOURCE));
        stage.place(job.build(records, stage, arguments).sinkTo(Kafka.sink(arguments)));
    }

    static void prepare(StreamExecutionEnvironment environment, Arguments arguments) {
        Configuration configuration = new Configuration();
        // A class that Flink cannot write by itself would be slow, and could not be read by a later version of it.
        configuration.set(PipelineOptions.GENERIC_TYPES, false);
        environment.configure(configuration);
        environment.setMaxParallelism(Stage.MAX_PARALLELISM);
        long checkpointMs = arguments.number("checkpoint-ms", 0, 86_400_000);
        if (checkpointMs > 0 && checkpointMs < SHORTEST_CHECKPOINT_MS) {
            throw new BadArgument("--checkpoint-ms must be 0 or at least " + SHORTEST_CHECKPOINT_MS + ", not " + checkpointMs);
        }
        if (checkpointMs > 0) {
            environment.enableCheckpointing(checkpointMs);
        }
        if (Kafka.isExactlyOnce(arguments) && !environment.getCheckpointConfig().isCheckpointingEnabled()) {
            throw new BadArgument("exactly-once output appears with each checkpoint, and this Flink takes none:"
                    + " give --checkpoint-ms, or --guarantee at-least-once");
        }
    }

    static List<Option> options(Job job) {
        List<Option> options = new ArrayList<>(List.of(
                Option.needed("brokers", "Kafka, as host:port"),
                new Option("input", "input", "topic to read"),
                new Option("output", "output", "topic to write"),
                new Option("group", "fogscale-" + job.name(), "consumer group whose offsets tell the lag"),
                new Option("from", "earliest", "where to begin without a savepoint: earliest, latest, committed"),
                new Option("until", "stopped", "stopped: run on; latest: end with what the topic holds now"),
                new Option("layout", "split", "split: source and sink on the services node; fog: all in each slot"),
                new Option("parallelism", "1", "instances: a number for all that scale, or operator=number,…"),
                new Option("chained", "false", "true: operators that can share a thread do"),
                new Option("guarantee", "exactly-once", "exactly-once or at-least-once"),
                new Option("transactions", "fogscale-" + job.name(), "how ids of transactions begin: one job, one beginning"),
                new Option("transaction-timeout-s", "900", "when the broker gives up an open transaction"),
                new Option("checkpoint-ms", "0", "between checkpoints; 0: as the cluster is set"),
                new Option("kafka-user", "", "for a broker that asks for one (SCRAM-SHA-512)"),
                new Option("kafka-password", "", "of that user"),
                new Option("kafka-password-file", "", "file of the JobManager that holds it instead"),
                new Option("kafka-password-env", "", "variable of the JobManager that holds it instead")));
        options.addAll(job.options());
        return options;
    }

    static String help(Job job) {
        return Arguments.help(job.name() + ": " + job.summary() + "\nOperators: " + String.join(", ", job.operators()),
                options(job)) + "  --kafka.NAME               any setting of Kafka's clients, for source and sink\n";
    }
}
