package fogscale.jobs;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** A job between records from memory and a list of results, in a Flink inside this process. */
final class Pipelines {
    // In one process, a job reads and writes what a test has.
    private static volatile List<Input> inputs;
    private static final Queue<Output> RESULTS = new ConcurrentLinkedQueue<>();

    private Pipelines() {}

    /** All that comes out. */
    static List<Output> run(Job job, List<Input> records, int parallelism) throws Exception {
        RESULTS.clear();
        composed(job, records, parallelism, 1e9, Main.here()).execute();
        return new ArrayList<>(RESULTS);
    }

    /** All that comes out where the job is stopped after some of its records, and goes on with more or fewer instances. */
    static List<Output> runRescaled(Job job, List<Input> records, int before, int after, String folder) throws Exception {
        RESULTS.clear();
        JobClient client = composed(job, records, before, records.size() / 4.0, Main.here()).executeAsync();
        while (RESULTS.size() < 20) {
            TimeUnit.MILLISECONDS.sleep(20);
        }
        String savepoint = client.stopWithSavepoint(false, folder, SavepointFormatType.CANONICAL).get();
        Configuration resume = new Configuration();
        resume.set(StateRecoveryOptions.SAVEPOINT_PATH, savepoint);
        StreamExecutionEnvironment environment = Main.here();
        environment.configure(resume);
        composed(job, records, after, 1e9, environment).execute();
        return new ArrayList<>(RESULTS);
    }

    private static StreamExecutionEnvironment composed(
            Job job, List<Input> records, int parallelism, double perSecond, StreamExecutionEnvironment environment) {
        Arguments arguments = Arguments.read(Runner.options(job), true, "--brokers", "none:1", "--guarantee", "at-least-once",
                "--parallelism", Integer.toString(parallelism), "--cost-us", "0");
        Runner.prepare(environment, arguments);
        Stage stage = new Stage(job, arguments);
        inputs = records;
        DataGeneratorSource<Input> source = new DataGeneratorSource<>(
                number -> inputs.get(number.intValue()), records.size(), RateLimiterStrategy.perSecond(perSecond),
                TypeInformation.of(Input.class));
        stage.place(job.build(
                stage.place(Stage.SOURCE, environment.fromSource(source, job.time(arguments), Stage.SOURCE)),
                stage, arguments).sinkTo(new Collect()));
        return environment;
    }

    private static final class Collect implements Sink<Output> {
        private static final long serialVersionUID = 1;

        @Override
        public SinkWriter<Output> createWriter(WriterInitContext context) {
            return new SinkWriter<>() {
                @Override
                public void write(Output output, Context unused) {
                    RESULTS.add(output);
                }

                @Override
                public void flush(boolean endOfInput) {}

                @Override
                public void close() {}
            };
        }
    }
}
