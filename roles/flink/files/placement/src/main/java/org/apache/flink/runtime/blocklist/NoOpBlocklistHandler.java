package org.apache.flink.runtime.blocklist;

import fogscale.placement.NodesInUse;
import java.util.Collection;
import java.util.Set;
import java.util.function.Function;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.concurrent.ComponentMainThreadExecutor;
import org.slf4j.Logger;

/**
 * Taken instead of Flink's own class of this name, which blocks nothing: the ResourceManager gives no slot of a TaskManager that is
 * not in use, as one on standby, to any job. What runs there already runs on.
 */
public class NoOpBlocklistHandler implements BlocklistHandler {
    @Override
    public void addNewBlockedNodes(Collection<BlockedNode> nodes) {}

    @Override
    public boolean isBlockedTaskManager(ResourceID taskManager) {
        return !NodesInUse.contains(taskManager.getResourceIdString());
    }

    @Override
    public Set<String> getAllBlockedNodeIds() {
        return Set.of();
    }

    @Override
    public void registerBlocklistListener(BlocklistListener listener) {}

    @Override
    public void deregisterBlocklistListener(BlocklistListener listener) {}

    /** As Flink's own, by the name that it looks for. */
    public static class Factory implements BlocklistHandler.Factory {
        @Override
        public BlocklistHandler create(
                BlocklistContext context, Function<ResourceID, String> nodeOf, ComponentMainThreadExecutor executor, Logger log) {
            return new NoOpBlocklistHandler();
        }
    }
}
