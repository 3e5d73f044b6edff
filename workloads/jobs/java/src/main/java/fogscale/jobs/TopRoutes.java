package fogscale.jobs;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * The first query of the DEBS 2015 challenge, with the operators of the EDF paper (FGCS 2018, §9): every minute of event time, the
 * ten routes that most taxis drove in the last 30 minutes. A route leads from one cell of 500 m to another.
 */
public final class TopRoutes implements Job {
    static final String PARSER = "parser";
    static final String FILTER = "filterByCoordinates";
    static final String ROUTE = "computeRouteID";
    static final String METRONOME = "metronome";
    static final String COUNT = "countByWindow";
    static final String PARTIAL = "partialRank";
    static final String GLOBAL = "globalRank";

    static final long TICK_MS = 60_000;
    static final long WINDOW_MS = 30 * TICK_MS;
    static final int TOP = 10;
    /** The challenge's grid: the middle of its first cell in the north-west, the sides of a cell, and cells on a side. */
    static final double WEST = -74.913585;
    static final double NORTH = 41.474937;
    static final double CELL_LONGITUDE = 0.005986;
    static final double CELL_LATITUDE = 0.004491556;
    static final int CELLS = 300;

    static final OutputTag<Output> REFUSED = new OutputTag<>("refused", TypeInformation.of(Output.class));
    static final OutputTag<Long> TIMES = new OutputTag<>("times", Types.LONG);
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss");
    /** One for each key group, so that any number of instances gets even parts. */
    private static final int[] BUCKETS = buckets();

    public static void main(String[] words) throws Exception {
        Runner.run(new TopRoutes(), words);
    }

    @Override
    public String name() {
        return "toproutes";
    }

    @Override
    public String summary() {
        return "ranks the ten most driven routes of the last 30 minutes, every minute";
    }

    @Override
    public List<Option> options() {
        return List.of(
                new Option("cost-us", "500", "processor time that partialRank takes for a changed count"),
                new Option("out-of-order-s", "5", "how much later than others a trip of a partition may come"),
                new Option("idle-s", "10", "after which a partition without trips no longer holds time up"));
    }

    @Override
    public List<String> operators() {
        return List.of(Stage.SOURCE, PARSER, FILTER, ROUTE, METRONOME, COUNT, PARTIAL, GLOBAL, Stage.SINK);
    }

    @Override
    public Set<String> alone() {
        return Set.of(METRONOME, GLOBAL);
    }

    @Override
    public WatermarkStrategy<Input> time(Arguments arguments) {
        return WatermarkStrategy
                .<Input>forBoundedOutOfOrderness(Duration.ofSeconds(arguments.number("out-of-order-s", 0, 86_400)))
                .withTimestampAssigner((input, kafkaMs) -> timeMs(input))
                .withIdleness(Duration.ofSeconds(arguments.number("idle-s", 1, 86_400)));
    }

    private static long timeMs(Input input) {
        try {
            return parsed(input).timeMs;
        } catch (NotUsable reason) {
            return Long.MIN_VALUE; // moves no clock
        }
    }

    @Override
    public DataStream<Output> build(DataStream<Input> records, Stage stage, Arguments arguments) {
        SingleOutputStreamOperator<Trip> parsed = stage.place(PARSER, stage.spread(records).process(new Parser()));
        SingleOutputStreamOperator<Trip> inside = stage.place(FILTER, stage.spread(parsed).process(new Filter()));
        DataStream<Trip> routes = stage.place(ROUTE, stage.spread(inside).map(new ComputeRoute()));
        DataStream<Tick> ticks =
                stage.place(METRONOME, inside.getSideOutput(TIMES).keyBy(time -> 0, Types.INT).process(new Metronome()));
        DataStream<Change> counts = stage.place(COUNT, routes.keyBy(trip -> trip.bucket, Types.INT)
                .connect(ticks.keyBy(tick -> tick.bucket, Types.INT)).process(new CountByWindow()));
        DataStream<Partial> partial = stage.place(PARTIAL, counts.keyBy(change -> change.bucket, Types.INT)
                .process(new PartialRank(arguments.number("cost-us", 0, 60_000_000))));
        DataStream<Output> ranking =
                stage.place(GLOBAL, partial.keyBy(each -> 0, Types.INT).process(new GlobalRank()));
        return ranking.union(parsed.getSideOutput(REFUSED), inside.getSideOutput(REFUSED));
    }

    private static int[] buckets() {
        int[] buckets = new int[Stage.MAX_PARALLELISM];
        boolean[] found = new boolean[buckets.length];
        for (int key = 0, left = buckets.length; left > 0; key++) {
            int group = KeyGroupRangeAssignment.assignToKeyGroup(key, buckets.length);
            if (!found[group]) {
                found[group] = true;
                buckets[group] = key;
                left--;
            }
        }
        return buckets;
    }

    public static class Trip {
        public double[] places; // longitude and latitude of pickup, then of drop-off
        public long timeMs; // of the drop-off
        public int bucket;
        public String route = "";
        public Tally of;
    }

    static final class Parser extends ProcessFunction<Input, Trip> {
        private static final long serialVersionUID = 1;

        @Override
        public void processElement(Input input, Context context, Collector<Trip> out) {
            try {
                out.collect(parsed(input));
            } catch (NotUsable reason) {
                context.output(REFUSED, Output.fault(input, PARSER, reason.getMessage()));
            }
        }
    }

    static Trip parsed(Input input) throws NotUsable {
        String[] columns = new String(input.value, StandardCharsets.UTF_8).split(",", -1);
        if (columns.length != 17) {
            throw new NotUsable(columns.length + " columns instead of 17");
        }
        Trip trip = new Trip();
        trip.of = Tally.of(input);
        try {
            trip.timeMs = 1000 * LocalDateTime.parse(columns[3], TIME).toEpochSecond(ZoneOffset.UTC);
            trip.places = new double[4];
            for (int place = 0; place < 4; place++) {
                trip.places[place] = Double.parseDouble(columns[6 + place]);
                if (trip.places[place] == 0) {
                    throw new NotUsable("no coordinates");
                }
            }
        } catch (DateTimeParseException | NumberFormatException error) {
            throw new NotUsable("not a trip");
        }
        return trip;
    }

    static final class Filter extends ProcessFunction<Trip, Trip> {
        private static final long serialVersionUID = 1;

        @Override
        public void processElement(Trip trip, Context context, Collector<Trip> out) {
            if (route(trip) == null) {
                context.output(REFUSED, Output.fault(trip.of, FILTER, "outside the area"));
            } else {
                context.output(TIMES, trip.timeMs);
                out.collect(trip);
            }
        }
    }

    /** Null outside the grid. */
    static String route(Trip trip) {
        String from = cell(trip.places[0], trip.places[1]);
        String to = cell(trip.places[2], trip.places[3]);
        return from == null || to == null ? null : from + "-" + to;
    }

    private static String cell(double longitude, double latitude) {
        long east = (long) Math.floor((longitude - WEST) / CELL_LONGITUDE + 0.5);
        long south = (long) Math.floor((NORTH - latitude) / CELL_LATITUDE + 0.5);
        boolean inside = east >= 0 && east < CELLS && south >= 0 && south < CELLS;
        return inside ? (east + 1) + "." + (south + 1) : null;
    }

    static final class ComputeRoute implements MapFunction<Trip, Trip> {
        private static final long serialVersionUID = 1;

        @Override
        public Trip map(Trip trip) {
            trip.route = route(trip);
            trip.bucket = BUCKETS[Math.floorMod(trip.route.hashCode(), BUCKETS.length)];
            return trip;
        }
    }

    /** The end of a minute, told to one bucket. */
    public static class Tick {
        public int bucket;
        public long timeMs;
    }

    /** Tells every bucket that a minute is over, until the windows of all trips are. */
    static final class Metronome extends KeyedProcessFunction<Integer, Long, Tick> {
        private static final long serialVersionUID = 1;
        private transient ValueState<Long> last; // the end of the latest trip's minute
        private transient ValueState<Long> told; // the end of the latest minute that was told of

        @Override
        public void open(OpenContext context) {
            told = getRuntimeContext().getState(new ValueStateDescriptor<>("told", Types.LONG));
            last = getRuntimeContext().getState(new ValueStateDescriptor<>("last", Types.LONG));
        }

        @Override
        public void processElement(Long timeMs, Context context, Collector<Tick> out) throws Exception {
            // A late trip counts in the minute that is open: that one has to end too.
            long endMs = told.value() == null ? sliceEnd(timeMs) : Math.max(sliceEnd(timeMs), told.value() + TICK_MS);
            if (last.value() == null || endMs > last.value()) {
                last.update(endMs);
            }
            context.timerService().registerEventTimeTimer(endMs - 1);
        }

        @Override
        public void onTimer(long timeMs, OnTimerContext context, Collector<Tick> out) throws Exception {
            for (int bucket : BUCKETS) {
                Tick tick = new Tick();
                tick.bucket = bucket;
                tick.timeMs = timeMs + 1;
                out.collect(tick);
            }
            told.update(timeMs + 1);
            if (timeMs + 1 < last.value() + WINDOW_MS) {
                context.timerService().registerEventTimeTimer(timeMs + TICK_MS);
            }
        }
    }

    static long sliceEnd(long timeMs) {
        return (Math.floorDiv(timeMs, TICK_MS) + 1) * TICK_MS;
    }

    /** How often a route was driven, and when last. */
    public static class Count {
        public String route;
        public long trips;
        public long lastMs;

        static final Comparator<Count> RANK = Comparator.<Count>comparingLong(count -> -count.trips)
                .thenComparingLong(count -> -count.lastMs).thenComparing(count -> count.route);

        public Count() {}

        Count(String route, long trips, long lastMs) {
            this.route = route;
            this.trips = trips;
            this.lastMs = lastMs;
        }
    }

    /** A route's new count; at the end of a minute's changes, one without a route. */
    public static class Change {
        public int bucket;
        public long tickMs;
        public Count count;
        public Tally of;

        static Change of(int bucket, long tickMs, Count count, Tally of) {
            Change change = new Change();
            change.bucket = bucket;
            change.tickMs = tickMs;
            change.count = count;
            change.of = of;
            return change;
        }
    }

    private static final TypeInformation<Count> COUNT_TYPE = TypeInformation.of(Count.class);
    private static final TypeInformation<Map<String, Count>> SLICE_TYPE = TypeInformation.of(new TypeHint<>() {});

    /** Counts by the minute; what leaves the window is taken off again. A late trip counts in the minute that is open. */
    static final class CountByWindow extends KeyedCoProcessFunction<Integer, Trip, Tick, Change> {
        private static final long serialVersionUID = 1;
        private transient MapState<Long, Map<String, Count>> slices; // by the minute's end
        private transient MapState<String, Count> totals;
        private transient ValueState<Long> told; // the end of the latest minute that was told of
        private transient ValueState<Tally> since; // the trips since then

        @Override
        public void open(OpenContext context) {
            slices = getRuntimeContext().getMapState(new MapStateDescriptor<>("slices", Types.LONG, SLICE_TYPE));
            totals = getRuntimeContext().getMapState(new MapStateDescriptor<>("totals", Types.STRING, COUNT_TYPE));
            told = getRuntimeContext().getState(new ValueStateDescriptor<>("told", Types.LONG));
            since = getRuntimeContext().getState(new ValueStateDescriptor<>("since", TypeInformation.of(Tally.class)));
        }

        @Override
        public void processElement1(Trip trip, Context context, Collector<Change> out) throws Exception {
            long endMs = sliceEnd(trip.timeMs);
            if (told.value() != null && endMs <= told.value()) {
                endMs = told.value() + TICK_MS;
            }
            Map<String, Count> slice = slices.contains(endMs) ? slices.get(endMs) : new HashMap<>();
            Count count = slice.computeIfAbsent(trip.route, route -> new Count(route, 0, Long.MIN_VALUE));
            count.trips++;
            count.lastMs = Math.max(count.lastMs, trip.timeMs);
            slices.put(endMs, slice);
            Tally tally = since.value() == null ? new Tally() : since.value();
            since.update(tally.add(trip.of));
        }

        @Override
        public void processElement2(Tick tick, Context context, Collector<Change> out) {
            // Not at once: trips of that minute may still be on their way, and time passes when they are here.
            context.timerService().registerEventTimeTimer(tick.timeMs - 1);
        }

        @Override
        public void onTimer(long timeMs, OnTimerContext context, Collector<Change> out) throws Exception {
            long tickMs = timeMs + 1;
            Set<String> changed = new LinkedHashSet<>();
            for (Long endMs : ends()) {
                boolean isNew = endMs <= tickMs && (told.value() == null || endMs > told.value());
                boolean isOld = endMs <= tickMs - WINDOW_MS;
                if (isNew) {
                    add(slices.get(endMs), 1, changed);
                }
                if (isOld) {
                    add(slices.get(endMs), -1, changed);
                    slices.remove(endMs);
                }
            }
            int bucket = context.getCurrentKey();
            for (String route : changed) {
                Count total = totals.get(route);
                out.collect(Change.of(bucket, tickMs, new Count(route, total.trips, total.lastMs), new Tally()));
                if (total.trips == 0) {
                    totals.remove(route);
                }
            }
            Tally tally = since.value() == null ? new Tally() : since.value();
            out.collect(Change.of(bucket, tickMs, null, tally));
            since.clear();
            told.update(tickMs);
        }

        private List<Long> ends() throws Exception {
            List<Long> ends = new ArrayList<>();
            slices.keys().forEach(ends::add);
            ends.sort(null);
            return ends;
        }

        private void add(Map<String, Count> slice, int sign, Set<String> changed) throws Exception {
            for (Count part : slice.values()) {
                Count total = totals.contains(part.route) ? totals.get(part.route) : new Count(part.route, 0, Long.MIN_VALUE);
                total.trips += sign * part.trips;
                total.lastMs = Math.max(total.lastMs, part.lastMs);
                totals.put(part.route, total);
                changed.add(part.route);
            }
        }
    }

    /** The best routes of one bucket. */
    public static class Partial {
        public long tickMs;
        public List<Count> top = new ArrayList<>();
        public int buckets = 1; // that went into it
        public Tally of = new Tally();
    }

    static List<Count> best(Iterable<Count> counts) {
        List<Count> sorted = new ArrayList<>();
        counts.forEach(sorted::add);
        sorted.sort(Count.RANK);
        return new ArrayList<>(sorted.subList(0, Math.min(TOP, sorted.size())));
    }

    static final class PartialRank extends KeyedProcessFunction<Integer, Change, Partial> {
        private static final long serialVersionUID = 1;
        private final long costUs;
        private transient MapState<String, Count> counts;
        private transient Cost cost;

        PartialRank(long costUs) {
            this.costUs = costUs;
        }

        @Override
        public void open(OpenContext context) {
            cost = new Cost(costUs);
            counts = getRuntimeContext().getMapState(new MapStateDescriptor<>("counts", Types.STRING, COUNT_TYPE));
        }

        @Override
        public void processElement(Change change, Context context, Collector<Partial> out) throws Exception {
            if (change.count == null) {
                Partial partial = new Partial();
                partial.tickMs = change.tickMs;
                partial.top = best(counts.values());
                partial.of = change.of;
                out.collect(partial);
                return;
            }
            long begunNs = cost.begin();
            if (change.count.trips == 0) {
                counts.remove(change.count.route);
            } else {
                counts.put(change.count.route, change.count);
            }
            cost.end(begunNs);
        }
    }

    static final class GlobalRank extends KeyedProcessFunction<Integer, Partial, Output> {
        private static final long serialVersionUID = 1;
        private transient MapState<Long, Partial> merged; // by the minute's end, until all buckets are there

        @Override
        public void open(OpenContext context) {
            merged = getRuntimeContext().getMapState(
                    new MapStateDescriptor<>("merged", Types.LONG, TypeInformation.of(Partial.class)));
        }

        @Override
        public void processElement(Partial partial, Context context, Collector<Output> out) throws Exception {
            Partial all = merged.get(partial.tickMs);
            if (all == null) {
                merged.put(partial.tickMs, partial);
                return;
            }
            all.top.addAll(partial.top);
            all.top = best(all.top);
            all.of.add(partial.of);
            all.buckets += partial.buckets;
            if (all.buckets < BUCKETS.length) {
                merged.put(partial.tickMs, all);
                return;
            }
            merged.remove(partial.tickMs);
            out.collect(Output.of("top", GLOBAL, all.of, ranking(all)));
        }

        private static String ranking(Partial all) {
            List<String> routes = all.top.stream().map(count -> "{\"route\":\"" + count.route + "\",\"trips\":" + count.trips
                    + ",\"lastMs\":" + count.lastMs + "}").toList();
            return "{\"endMs\":" + all.tickMs + ",\"routes\":[" + String.join(",", routes) + "]}";
        }
    }
}
