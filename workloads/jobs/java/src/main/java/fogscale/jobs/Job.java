package fogscale.jobs;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.streaming.api.datastream.DataStream;

/** What lies between the source and the sink, which are the same for all jobs. */
public interface Job {
    String name();

    /** What it does, in a line. */
    String summary();

    /** Settings that only this job has. */
    List<Option> options();

    /** All operators by name, source and sink included, upstream first. */
    List<String> operators();

    /** Operators that share slots, by the name of the group; others have a group of their own. */
    default Map<String, String> groups() {
        return Map.of();
    }

    /** Operators of which there is only ever one instance. */
    default Set<String> alone() {
        return Set.of();
    }

    /** How time passes, for jobs with windows. */
    default WatermarkStrategy<Input> time(Arguments arguments) {
        return WatermarkStrategy.noWatermarks();
    }

    DataStream<Output> build(DataStream<Input> records, Stage stage, Arguments arguments);
}
