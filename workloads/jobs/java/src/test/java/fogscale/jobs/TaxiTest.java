package fogscale.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** The nearest sight, and rides that cannot be used. */
class TaxiTest {
    private static String result(String ride) {
        return Taxi.nearest(new Input("t".getBytes(), ride.getBytes(), "r", 1, 2, 3)).result;
    }

    @Test
    void aRideGetsTheSightNearestToItsPickup() {
        String ride = "{\"pickupLon\":-74.0445,\"pickupLat\":40.6992}";
        assertEquals("{\"nearest\":{\"attraction\":\"Statue of Liberty\",\"distanceDeg\":0.010000},\"trip\":" + ride + "}",
                result(ride));
        assertTrue(result("{\"pickupLat\":40.7581,\"pickupLon\":-73.9855}").contains("\"Times Square\",\"distanceDeg\":0.000100"));
        assertTrue(result("{\"pickupLat\":40.7829,\"pickupLon\":-73.9654}").contains("\"Central Park\",\"distanceDeg\":0.000000"));
    }

    @Test
    void aRideThatCannotBeUsedSaysWhy() {
        assertEquals("{\"fault\":\"no number 'pickupLat'\"}", result("{\"pickupLon\":-74}"));
        assertEquals("{\"fault\":\"no number 'pickupLon'\"}", result("{\"pickupLon\":\"west\"}"));
        assertEquals("{\"fault\":\"not a JSON object\"}", result("[1"));
        assertEquals("{\"fault\":\"not a JSON object\"}", result(""));
    }
}
