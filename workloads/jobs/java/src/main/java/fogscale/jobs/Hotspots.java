package fogscale.jobs;

import java.util.Locale;

/** Three sights of New York, and which is nearest: in degrees on the map, as the Gesscale paper has it (§V-A-b). */
final class Hotspots {
    private static final String[] NAMES = {"Times Square", "Central Park", "Statue of Liberty"};
    private static final double[] LONGITUDES = {-73.9855, -73.9654, -74.0445};
    private static final double[] LATITUDES = {40.7580, 40.7829, 40.6892};

    private Hotspots() {}

    /** As JSON. */
    static String nearest(double longitude, double latitude) {
        int nearest = 0;
        double shortest = Double.MAX_VALUE;
        for (int each = 0; each < NAMES.length; each++) {
            double distance = Math.hypot(LONGITUDES[each] - longitude, LATITUDES[each] - latitude);
            if (distance < shortest) {
                shortest = distance;
                nearest = each;
            }
        }
        return String.format(Locale.ROOT, "{\"attraction\":\"%s\",\"distanceDeg\":%.6f}", NAMES[nearest], shortest);
    }
}
