package fogscale.jobs;

import java.io.IOException;
import java.io.Serializable;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.AsyncDataStream;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.async.ResultFuture;
import org.apache.flink.streaming.api.functions.async.RichAsyncFunction;

/** What `taxi` does, but the nearest sight is asked of a service: bound by waiting for its answers, hence by the round trip. */
public final class Lookup implements Job {
    static final String MAP = Taxi.MAP;

    public static void main(String[] words) throws Exception {
        Runner.run(new Lookup(), words);
    }

    @Override
    public String name() {
        return "lookup";
    }

    @Override
    public String summary() {
        return "asks a service for the sight that is nearest to each ride's pickup";
    }

    @Override
    public List<Option> options() {
        return List.of(
                new Option("service", "localhost:9870", "where fogscale.jobs.HotspotService listens, as host:port"),
                new Option("ask", "sync", "sync: one question at a time; async: many at once"),
                new Option("in-flight", "100", "questions at once, of each instance, when asked async"),
                new Option("cost-us", "0", "processor time that map takes for a record, besides asking"),
                new Option("answer-within-ms", "30000", "before the job fails and starts again from its last checkpoint"));
    }

    @Override
    public List<String> operators() {
        return List.of(Stage.SOURCE, MAP, Stage.SINK);
    }

    @Override
    public DataStream<Output> build(DataStream<Input> records, Stage stage, Arguments arguments) {
        Service service = service(arguments);
        DataStream<Input> rides = stage.spread(records);
        if (arguments.choice("ask", "sync", "async").equals("sync")) {
            return stage.place(MAP, rides.map(new AskOne(service)));
        }
        int inFlight = (int) arguments.number("in-flight", 1, 100_000);
        return stage.place(MAP,
                AsyncDataStream.unorderedWait(rides, new AskMany(service), service.withinMs, TimeUnit.MILLISECONDS, inFlight));
    }

    private static Service service(Arguments arguments) {
        String[] sides = arguments.text("service").split(":", -1);
        if (sides.length != 2 || sides[0].isEmpty()) {
            throw new BadArgument("--service: write host:port, not '" + arguments.text("service") + "'");
        }
        int port = (int) Arguments.whole("--service: the port", sides[1], 1, 65_535);
        return new Service(sides[0], port, (int) arguments.number("answer-within-ms", 1, 3_600_000),
                arguments.number("cost-us", 0, 60_000_000));
    }

    record Service(String host, int port, int withinMs, long costUs) implements Serializable {
        HotspotClient connect() throws IOException {
            return new HotspotClient(host, port, withinMs);
        }
    }

    /** The answer to a ride's question; a ride that cannot be used is answered at once. */
    private static CompletableFuture<Output> ask(HotspotClient client, Input ride) {
        try {
            JsonNode trip = Json.object(ride.value);
            double longitude = Json.number(trip, "pickupLon");
            return client.ask(longitude, Json.number(trip, "pickupLat")).thenApply(hotspot -> Taxi.extended(ride, hotspot));
        } catch (NotUsable reason) {
            return CompletableFuture.completedFuture(Output.fault(ride, MAP, reason.getMessage()));
        }
    }

    static final class AskOne extends RichMapFunction<Input, Output> {
        private static final long serialVersionUID = 1;
        private final Service service;
        private transient HotspotClient client;
        private transient Cost cost;

        AskOne(Service service) {
            this.service = service;
        }

        @Override
        public void open(OpenContext context) throws IOException {
            client = service.connect();
            cost = new Cost(service.costUs);
        }

        @Override
        public Output map(Input ride) throws Exception {
            long begunNs = cost.begin();
            CompletableFuture<Output> answer = ask(client, ride);
            cost.end(begunNs);
            return answer.get(service.withinMs, TimeUnit.MILLISECONDS);
        }

        @Override
        public void close() throws IOException {
            if (client != null) {
                client.close();
            }
        }
    }

    static final class AskMany extends RichAsyncFunction<Input, Output> {
        private static final long serialVersionUID = 1;
        private final Service service;
        private transient HotspotClient client;
        private transient Cost cost;

        AskMany(Service service) {
            this.service = service;
        }

        @Override
        public void open(OpenContext context) throws IOException {
            client = service.connect();
            cost = new Cost(service.costUs);
        }

        @Override
        public void asyncInvoke(Input ride, ResultFuture<Output> result) {
            long begunNs = cost.begin();
            CompletableFuture<Output> answer = ask(client, ride);
            cost.end(begunNs);
            answer.whenComplete((output, error) -> {
                if (error == null) {
                    result.complete(List.of(output));
                } else {
                    result.completeExceptionally(error);
                }
            });
        }

        @Override
        public void close() throws IOException {
            if (client != null) {
                client.close();
            }
        }
    }
}
