package fogscale.jobs;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Makes the work on a record take so much of the processor, whatever else runs: counted is the thread's own time on it, not the
 * clock, which goes on while a CPU quota holds the thread.
 */
final class Cost {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final int STEPS = 200; // between two looks at the time, about a microsecond
    private final long costNs;
    private long scrap = 1; // a field: were it not kept, the compiler could leave out the work

    Cost(long costUs) {
        this.costNs = costUs * 1000;
    }

    /** When the work began; 0 where no cost is asked for. */
    long begin() {
        return costNs == 0 ? 0 : THREADS.getCurrentThreadCpuTime();
    }

    /** Works on until the cost is reached, the work since `begin` included. */
    void end(long begunNs) {
        while (costNs > 0 && THREADS.getCurrentThreadCpuTime() - begunNs < costNs) {
            for (int step = 0; step < STEPS; step++) {
                scrap = scrap * 6364136223846793005L + 1442695040888963407L;
            }
        }
    }
}
