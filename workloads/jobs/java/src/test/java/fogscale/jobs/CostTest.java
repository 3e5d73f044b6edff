package fogscale.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/** A record's cost is processor time of the thread, its own work included. */
class CostTest {
    private static long cpuNs() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    @Test
    void aHundredRecordsTakeAHundredTimesTheCost() {
        Cost cost = new Cost(2000);
        long begunNs = cpuNs();
        for (int record = 0; record < 100; record++) {
            cost.end(cost.begin());
        }
        double spentMs = (cpuNs() - begunNs) / 1e6;
        // On a machine that is itself virtual and busy, time taken by others counts as the thread's.
        assertTrue(spentMs >= 200 && spentMs < 300, spentMs + " ms instead of 200");
    }

    @Test
    void withoutCostNothingIsMeasured() {
        Cost cost = new Cost(0);
        assertEquals(0, cost.begin());
        cost.end(0);
    }
}
