import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/** Counts without end, some thousand numbers a second, and keeps the counts as state: something to take a savepoint of. */
public class CountingJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment.fromSequence(0, Long.MAX_VALUE).uid("numbers").setParallelism(1)
                .keyBy(number -> number % 16)
                .map(new Count()).uid("count").slotSharingGroup("count")
                .sinkTo(new DiscardingSink<Long>()).slotSharingGroup("count");
        environment.execute("counting");
    }

    private static class Count extends RichMapFunction<Long, Long> {
        private transient ValueState<Long> seen;

        @Override
        public void open(OpenContext context) {
            seen = getRuntimeContext().getState(new ValueStateDescriptor<>("seen", Long.class));
        }

        @Override
        public Long map(Long number) throws Exception {
            Thread.sleep(1);
            long count = seen.value() == null ? 1 : seen.value() + 1;
            seen.update(count);
            return count;
        }
    }
}
