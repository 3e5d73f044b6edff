package fogscale.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Every minute's ranking against counting all trips anew, at one scale and across a rescaling. */
class TopRoutesTest {
    private static final int TRIPS = 6000;
    private static final long START_S = LocalDateTime.of(2013, 1, 7, 8, 0).toEpochSecond(ZoneOffset.UTC);
    private static final long MINUTE_MS = 60_000;
    private static final DateTimeFormatter FORMAT = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss");
    private static final List<Input> INPUTS = new ArrayList<>();
    private static final List<Object[]> COUNTED = new ArrayList<>(); // time and route of the trips that count
    private static long refused;

    /** An hour and a half of trips between some dozen cells; some without coordinates, some from afar. */
    @BeforeAll
    static void draw() {
        Random random = new Random(1);
        for (int number = 0; number < TRIPS; number++) {
            long second = START_S + number * 5400L / TRIPS + random.nextInt(4);
            int kind = random.nextInt(40);
            int[] cells = {145 + random.nextInt(4), 155 + random.nextInt(4), 146 + random.nextInt(3), 156 + random.nextInt(3)};
            if (kind == 0) {
                cells[2] = 301;
            }
            String from = kind == 1 ? "0.000000,0.000000" : place(cells[0], cells[1], random);
            String to = kind == 1 ? "0.000000,0.000000" : place(cells[2], cells[3], random);
            String time = LocalDateTime.ofEpochSecond(second, 0, ZoneOffset.UTC).format(FORMAT);
            String line = "M,H,2013-01-07 07:00:00," + time + ",60,1.0," + from + "," + to + ",CSH,5.00,0.00,0.50,0.00,0.00,5.50";
            INPUTS.add(new Input("M".getBytes(), line.getBytes(), "r", number, number, number));
            if (kind > 1) {
                COUNTED.add(new Object[] {1000 * second, cells[0] + "." + cells[1] + "-" + cells[2] + "." + cells[3]});
            } else {
                refused++;
            }
        }
    }

    /** Somewhere within a cell; the challenge counts cells from 1, to the east and to the south. */
    private static String place(int east, int south, Random random) {
        double longitude = -74.913585 + (east - 1 + 0.8 * (random.nextDouble() - 0.5)) * 0.005986;
        double latitude = 41.474937 - (south - 1 + 0.8 * (random.nextDouble() - 0.5)) * 0.004491556;
        return String.format(java.util.Locale.ROOT, "%.6f,%.6f", longitude, latitude);
    }

    /** The ranking at the end of a minute, from all trips of the half hour before. */
    private static String byHand(long endMs) {
        Map<String, long[]> counts = new HashMap<>();
        for (Object[] trip : COUNTED) {
            long timeMs = (long) trip[0];
            if (timeMs >= endMs - 30 * MINUTE_MS && timeMs < endMs) {
                long[] count = counts.computeIfAbsent((String) trip[1], route -> new long[2]);
                count[0]++;
                count[1] = Math.max(count[1], timeMs);
            }
        }
        List<String> routes = new ArrayList<>(counts.keySet());
        routes.sort((one, other) -> {
            long[] a = counts.get(one);
            long[] b = counts.get(other);
            return a[0] != b[0] ? Long.compare(b[0], a[0]) : a[1] != b[1] ? Long.compare(b[1], a[1]) : one.compareTo(other);
        });
        List<String> told = routes.stream().limit(10).map(route -> "{\"route\":\"" + route + "\",\"trips\":"
                + counts.get(route)[0] + ",\"lastMs\":" + counts.get(route)[1] + "}").toList();
        return "{\"endMs\":" + endMs + ",\"routes\":[" + String.join(",", told) + "]}";
    }

    @Test
    void everyRankingIsAsCountedByHand() throws Exception {
        assertAsCountedByHand(Pipelines.run(new TopRoutes(), INPUTS, 3));
    }

    @Test
    void stateMovesAlongWhenTheJobIsRescaled(@TempDir Path folder) throws Exception {
        assertAsCountedByHand(Pipelines.runRescaled(new TopRoutes(), INPUTS, 2, 5, folder.toUri().toString()));
    }

    private static void assertAsCountedByHand(List<Output> outputs) {
        Map<Long, String> found = new TreeMap<>();
        Tally tally = new Tally();
        long faults = 0;
        for (Output output : outputs) {
            tally.add(output.of);
            if (output.by.equals(TopRoutes.GLOBAL)) {
                long endMs = Long.parseLong(output.result.substring(9, output.result.indexOf(',')));
                assertTrue(found.put(endMs, output.result) == null, "two rankings of " + endMs);
            } else {
                faults++;
            }
        }
        Map<Long, String> expected = new TreeMap<>();
        long lastMs = COUNTED.stream().mapToLong(trip -> (long) trip[0]).max().orElseThrow();
        long lastEndMs = (lastMs / MINUTE_MS + 1) * MINUTE_MS;
        for (long endMs = 1000 * START_S + MINUTE_MS; endMs <= lastEndMs + 30 * MINUTE_MS; endMs += MINUTE_MS) {
            expected.put(endMs, byHand(endMs));
        }
        assertEquals(String.join("\n", expected.values()), String.join("\n", found.values()));
        assertEquals(refused, faults);
        Tally all = new Tally();
        INPUTS.forEach(input -> all.add(Tally.of(input)));
        assertEquals(List.of(all.records, all.sum, all.mix), List.of(tally.records, tally.sum, tally.mix));
    }
}
