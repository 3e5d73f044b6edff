package fogscale.placement;

import java.util.Arrays;

/**
 * Which TaskManagers jobs may run on. The controller says so through `fogscale.jobs.Nodes`, whose main method Flink calls inside the
 * JobManager and which leaves the names in a property of its JVM. Until somebody has said anything, and after a JobManager began
 * anew, jobs may run on all of them.
 */
public final class NodesInUse {
    /** Names with commas between; as in fogscale.jobs.Nodes. */
    private static final String PROPERTY = "fogscale.nodes";

    private NodesInUse() {}

    public static boolean contains(String taskManager) {
        String names = System.getProperty(PROPERTY, "");
        return names.isEmpty() || Arrays.asList(names.split(",")).contains(taskManager);
    }
}
