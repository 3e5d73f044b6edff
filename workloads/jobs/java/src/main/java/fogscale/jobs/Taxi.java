package fogscale.jobs;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;

/** The job of the Gesscale paper (§V-A-b): every taxi ride with the sight nearest to its pickup. Bound by the processor. */
public final class Taxi implements Job {
    static final String MAP = "map";

    public static void main(String[] words) throws Exception {
        Runner.run(new Taxi(), words);
    }

    @Override
    public String name() {
        return "taxi";
    }

    @Override
    public String summary() {
        return "finds the sight of New York that is nearest to each ride's pickup";
    }

    @Override
    public List<Option> options() {
        return List.of(new Option("cost-us", "2000", "processor time that map takes for a record"));
    }

    @Override
    public List<String> operators() {
        return List.of(Stage.SOURCE, MAP, Stage.SINK);
    }

    @Override
    public DataStream<Output> build(DataStream<Input> records, Stage stage, Arguments arguments) {
        Nearest nearest = new Nearest(arguments.number("cost-us", 0, 60_000_000));
        return stage.place(MAP, stage.spread(records).map(nearest));
    }

    static final class Nearest extends RichMapFunction<Input, Output> {
        private static final long serialVersionUID = 1;
        private final long costUs;
        private transient Cost cost;

        Nearest(long costUs) {
            this.costUs = costUs;
        }

        @Override
        public void open(OpenContext context) {
            cost = new Cost(costUs);
        }

        @Override
        public Output map(Input ride) {
            long begunNs = cost.begin();
            Output output = nearest(ride);
            cost.end(begunNs);
            return output;
        }
    }

    static Output nearest(Input ride) {
        try {
            JsonNode trip = Json.object(ride.value);
            return extended(ride, Hotspots.nearest(Json.number(trip, "pickupLon"), Json.number(trip, "pickupLat")));
        } catch (NotUsable reason) {
            return Output.fault(ride, MAP, reason.getMessage());
        }
    }

    /** The ride itself goes along, as in the paper. */
    static Output extended(Input ride, String hotspot) {
        String trip = new String(ride.value, StandardCharsets.UTF_8);
        return Output.of(ride, MAP, "{\"nearest\":" + hotspot + ",\"trip\":" + trip + "}");
    }
}
