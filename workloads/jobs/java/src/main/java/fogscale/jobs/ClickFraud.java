package fogscale.jobs;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Click fraud detection as in the thesis (§5.1): for every 60 seconds of event time, the users behind each address, the addresses
 * of each user, and the share of ads that each user clicked on. Keeps state by key, which moves along when it is rescaled.
 */
public final class ClickFraud implements Job {
    static final String PARSE = "parse";
    static final long WINDOW_MS = 60_000;
    private static final byte[] TIME_FIELD = "\"timestamp\":".getBytes(StandardCharsets.US_ASCII);
    static final OutputTag<Output> FAULTS = new OutputTag<>("faults", TypeInformation.of(Output.class));

    /** The thesis' three, by the names of their operators. */
    enum Pattern {
        usersByAddress,
        addressesByUser,
        clickRate
    }

    public static void main(String[] words) throws Exception {
        Runner.run(new ClickFraud(), words);
    }

    @Override
    public String name() {
        return "clickfraud";
    }

    @Override
    public String summary() {
        return "counts users per address, addresses per user and clicks per user in windows of 60 s";
    }

    @Override
    public List<Option> options() {
        return List.of(
                new Option("cost-us", "200", "processor time that each of the three patterns takes for an event"),
                new Option("out-of-order-s", "5", "how much later than others an event of a partition may come"),
                new Option("idle-s", "10", "after which a partition without events no longer holds time up"));
    }

    @Override
    public List<String> operators() {
        return List.of(Stage.SOURCE, PARSE, Pattern.usersByAddress.name(), Pattern.addressesByUser.name(),
                Pattern.clickRate.name(), Stage.SINK);
    }

    @Override
    public Map<String, String> groups() {
        Map<String, String> groups = new HashMap<>(Map.of(PARSE, "patterns"));
        for (Pattern pattern : Pattern.values()) {
            groups.put(pattern.name(), "patterns");
        }
        return groups;
    }

    @Override
    public WatermarkStrategy<Input> time(Arguments arguments) {
        return WatermarkStrategy
                .<Input>forBoundedOutOfOrderness(Duration.ofSeconds(arguments.number("out-of-order-s", 0, 86_400)))
                .withTimestampAssigner((input, kafkaMs) -> timeMs(input.value))
                .withIdleness(Duration.ofSeconds(arguments.number("idle-s", 1, 86_400)));
    }

    /** Of an event as the producer writes it; Long.MIN_VALUE, which moves no clock, where there is none. */
    static long timeMs(byte[] event) {
        for (int at = 0; at + TIME_FIELD.length < event.length; at++) {
            if (java.util.Arrays.equals(event, at, at + TIME_FIELD.length, TIME_FIELD, 0, TIME_FIELD.length)) {
                long seconds = 0;
                int digit = at + TIME_FIELD.length;
                while (digit < event.length && event[digit] >= '0' && event[digit] <= '9' && seconds < 1L << 40) {
                    seconds = 10 * seconds + event[digit++] - '0';
                }
                return digit == at + TIME_FIELD.length ? Long.MIN_VALUE : 1000 * seconds;
            }
        }
        return Long.MIN_VALUE;
    }

    @Override
    public DataStream<Output> build(DataStream<Input> records, Stage stage, Arguments arguments) {
        long costUs = arguments.number("cost-us", 0, 60_000_000);
        SingleOutputStreamOperator<Click> clicks = stage.place(PARSE, stage.spread(records).process(new Parse()));
        DataStream<Output> all = clicks.getSideOutput(FAULTS);
        for (Pattern pattern : Pattern.values()) {
            boolean byAddress = pattern == Pattern.usersByAddress;
            all = all.union(stage.place(pattern.name(), clicks
                    .keyBy(click -> click.of.run + '/' + (byAddress ? click.ip : click.user), Types.STRING)
                    .process(new Windows(pattern, costUs))));
        }
        return all;
    }

    /** An ad that was shown, or clicked on. */
    public static class Click {
        public String ip;
        public String user;
        public boolean isClick;
        public long timeMs;
        public Tally of;
    }

    static final class Parse extends ProcessFunction<Input, Click> {
        private static final long serialVersionUID = 1;

        @Override
        public void processElement(Input input, Context context, Collector<Click> out) {
            try {
                out.collect(parsed(input));
            } catch (NotUsable reason) {
                context.output(FAULTS, Output.fault(input, PARSE, reason.getMessage()));
            }
        }
    }

    static Click parsed(Input input) throws NotUsable {
        JsonNode event = Json.object(input.value);
        Click click = new Click();
        click.ip = Json.text(event, "ip");
        click.user = Json.text(event, "userID");
        click.timeMs = 1000 * (long) Json.number(event, "timestamp");
        click.isClick = Json.text(event, "eventType").equals("click");
        click.of = Tally.of(input);
        return click;
    }

    /** What was seen of one key in one window. */
    public static class Seen {
        public Tally of = new Tally();
        public long clicks;
        public Map<String, Boolean> others = new HashMap<>();
    }

    /** An event that comes after its window was told of is told of in another result of that window: none is lost. */
    static final class Windows extends KeyedProcessFunction<String, Click, Output> {
        private static final long serialVersionUID = 1;
        private final Pattern pattern;
        private final long costUs;
        private transient MapState<Long, Seen> windows;
        private transient Cost cost;

        Windows(Pattern pattern, long costUs) {
            this.pattern = pattern;
            this.costUs = costUs;
        }

        @Override
        public void open(OpenContext context) {
            cost = new Cost(costUs);
            windows = getRuntimeContext().getMapState(
                    new MapStateDescriptor<>("windows", Types.LONG, TypeInformation.of(Seen.class)));
        }

        @Override
        public void processElement(Click click, Context context, Collector<Output> out) throws Exception {
            long begunNs = cost.begin();
            long startMs = Math.floorDiv(click.timeMs, WINDOW_MS) * WINDOW_MS;
            Seen seen = windows.contains(startMs) ? windows.get(startMs) : new Seen();
            seen.of.add(click.of);
            seen.clicks += click.isClick ? 1 : 0;
            if (pattern != Pattern.clickRate) {
                seen.others.put(pattern == Pattern.usersByAddress ? click.user : click.ip, true);
            }
            windows.put(startMs, seen);
            context.timerService().registerEventTimeTimer(startMs + WINDOW_MS - 1);
            cost.end(begunNs);
        }

        @Override
        public void onTimer(long timeMs, OnTimerContext context, Collector<Output> out) throws Exception {
            long startMs = timeMs + 1 - WINDOW_MS;
            Seen seen = windows.get(startMs);
            String key = context.getCurrentKey().substring(seen.of.run.length() + 1);
            out.collect(Output.of(key, pattern.name(), seen.of, result(key, startMs, seen)));
            windows.remove(startMs);
        }

        private String result(String key, long startMs, Seen seen) {
            String head = String.format(Locale.ROOT, "{\"key\":%s,\"windowMs\":%d,", Json.quoted(key), startMs);
            if (pattern == Pattern.clickRate) {
                long displays = seen.of.records - seen.clicks;
                return head + "\"clicks\":" + seen.clicks + ",\"displays\":" + displays + "}";
            }
            String counted = pattern == Pattern.usersByAddress ? "users" : "addresses";
            return head + "\"" + counted + "\":" + seen.others.size() + "}";
        }
    }
}
