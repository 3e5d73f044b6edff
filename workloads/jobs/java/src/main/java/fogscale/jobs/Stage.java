package fogscale.jobs;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamSink;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;

/** Where each operator runs, how many times, and by which name it is known. */
public final class Stage {
    /** Key groups of every operator: state can be moved to at most so many instances. The same ever after, or savepoints are void. */
    public static final int MAX_PARALLELISM = 128;

    public static final String SOURCE = "source";
    public static final String SINK = "sink";
    private static final String FOG = "fog";

    private final boolean split;
    private final boolean chained;
    private final Map<String, Integer> parallelism = new HashMap<>();
    private final Map<String, String> groups;
    private final Set<String> alone;

    public Stage(Job job, Arguments arguments) {
        split = arguments.choice("layout", "split", FOG).equals("split");
        chained = arguments.flag("chained");
        groups = job.groups();
        alone = job.alone();
        List<String> operators = job.operators();
        String wanted = arguments.text("parallelism");
        boolean forAll = wanted.chars().allMatch(Character::isDigit);
        int usual = forAll ? instances("--parallelism", wanted) : 1;
        for (String operator : operators) {
            boolean onServices = split && (operator.equals(SOURCE) || operator.equals(SINK));
            parallelism.put(operator, onServices || alone.contains(operator) ? 1 : usual);
        }
        if (!forAll) {
            for (String part : wanted.split(",")) {
                set(part, operators);
            }
        }
    }

    private void set(String part, List<String> operators) {
        String[] sides = part.split("=", -1);
        if (sides.length != 2) {
            throw new BadArgument("--parallelism: write a number, or operator=number with commas between, not '" + part + "'");
        }
        if (!operators.contains(sides[0])) {
            throw new BadArgument("--parallelism: " + Arguments.unknown("operator", sides[0], operators));
        }
        int instances = instances("--parallelism " + sides[0], sides[1]);
        if (instances > 1 && alone.contains(sides[0])) {
            throw new BadArgument("--parallelism: there can be only one " + sides[0] + ", not " + instances);
        }
        parallelism.put(sides[0], instances);
    }

    private static int instances(String what, String text) {
        return (int) Arguments.whole(what, text, 1, MAX_PARALLELISM);
    }

    public <T> SingleOutputStreamOperator<T> place(String name, SingleOutputStreamOperator<T> operator) {
        operator.name(name).uid(name).setParallelism(parallelism.get(name)).slotSharingGroup(group(name));
        operator.setMaxParallelism(alone.contains(name) ? 1 : MAX_PARALLELISM);
        // A chain is one task: nothing waits between its operators, so that no back pressure is seen.
        return chained ? operator : operator.disableChaining();
    }

    public void place(DataStreamSink<?> sink) {
        // Not kept from chaining: its parts, writer and committer, belong together, and what comes before it is not chained.
        sink.name(SINK).uid(SINK).setParallelism(parallelism.get(SINK)).slotSharingGroup(group(SINK));
        sink.setMaxParallelism(MAX_PARALLELISM);
    }

    /** To all instances in turn; where the whole pipeline is in each slot, from one operator to the next of the same slot. */
    public <T> DataStream<T> spread(DataStream<T> stream) {
        return split ? stream.rebalance() : stream;
    }

    private String group(String operator) {
        return split ? groups.getOrDefault(operator, operator) : FOG;
    }
}
