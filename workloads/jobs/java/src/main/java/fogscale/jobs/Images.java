package fogscale.jobs;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.streaming.api.datastream.DataStream;

/**
 * The mean brightness of pictures that cameras send, as grey PGM of some 30 kB each. Little work on many bytes: bound by how many
 * of them fit on the way to a worker in a round trip.
 */
public final class Images implements Job {
    static final String MAP = "map";

    public static void main(String[] words) throws Exception {
        Runner.run(new Images(), words);
    }

    @Override
    public String name() {
        return "images";
    }

    @Override
    public String summary() {
        return "tells the mean brightness of pictures of 30 kB";
    }

    @Override
    public List<Option> options() {
        return List.of(new Option("cost-us", "0", "processor time that map takes for a picture, at least"));
    }

    @Override
    public List<String> operators() {
        return List.of(Stage.SOURCE, MAP, Stage.SINK);
    }

    @Override
    public DataStream<Output> build(DataStream<Input> records, Stage stage, Arguments arguments) {
        Brightness brightness = new Brightness(arguments.number("cost-us", 0, 60_000_000));
        return stage.place(MAP, stage.spread(records).map(brightness));
    }

    static final class Brightness extends RichMapFunction<Input, Output> {
        private static final long serialVersionUID = 1;
        private final long costUs;
        private transient Cost cost;

        Brightness(long costUs) {
            this.costUs = costUs;
        }

        @Override
        public void open(OpenContext context) {
            cost = new Cost(costUs);
        }

        @Override
        public Output map(Input picture) {
            long begunNs = cost.begin();
            Output output = brightness(picture);
            cost.end(begunNs);
            return output;
        }
    }

    static Output brightness(Input picture) {
        try {
            Pgm pgm = Pgm.read(picture.value);
            long sum = 0;
            for (int at = pgm.first(); at < picture.value.length; at++) {
                sum += picture.value[at] & 0xFF;
            }
            double mean = (double) sum / (pgm.width() * pgm.height());
            return Output.of(picture, MAP, String.format(Locale.ROOT,
                    "{\"width\":%d,\"height\":%d,\"meanBrightness\":%.4f}", pgm.width(), pgm.height(), mean));
        } catch (NotUsable reason) {
            return Output.fault(picture, MAP, reason.getMessage());
        }
    }

    /** Where the pixels of a grey picture begin: `P5`, comments, width, height and the brightest value come before. */
    record Pgm(int width, int height, int first) {
        static Pgm read(byte[] picture) throws NotUsable {
            int[] numbers = new int[3];
            int found = 0;
            int at = 2;
            String start = new String(picture, 0, Math.min(2, picture.length), StandardCharsets.US_ASCII);
            while (start.equals("P5") && found < numbers.length && at < picture.length) {
                int letter = picture[at];
                if (letter == '#') {
                    while (at < picture.length && picture[at] != '\n') {
                        at++;
                    }
                } else if (letter >= '0' && letter <= '9') {
                    while (at < picture.length && picture[at] >= '0' && picture[at] <= '9' && numbers[found] < 1_000_000) {
                        numbers[found] = 10 * numbers[found] + picture[at++] - '0';
                    }
                    found++;
                    continue;
                }
                at++;
            }
            if (found < numbers.length || numbers[2] > 255 || picture.length - at - 1 != (long) numbers[0] * numbers[1]) {
                throw new NotUsable("not a PGM picture");
            }
            return new Pgm(numbers[0], numbers[1], at + 1);
        }
    }
}
