package org.apache.flink.runtime.scheduler.adaptive.allocator;

import fogscale.placement.NodesInUse;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.flink.runtime.jobmaster.slotpool.PhysicalSlot;
import org.apache.flink.runtime.scheduler.adaptive.JobSchedulingPlan.SlotAssignment;
import org.apache.flink.runtime.scheduler.adaptive.allocator.SlotSharingSlotAllocator.ExecutionSlotSharingGroup;

/**
 * Which slot runs what, instead of Flink's own class of this name, which comes later on the class path and looks at how many
 * slots of a TaskManager are taken, not at which it is: groups of sources and sinks go to the TaskManager of the services node,
 * all others to the fog, node by node in the order of their names, those in use first: a job that gives slots back keeps theirs. A
 * job that needs more slots than one side has takes the other side's, so that it runs in any case.
 */
public enum SlotsBalancedSlotMatchingResolver implements SlotMatchingResolver {
    INSTANCE;

    private static final String SERVICES_TASKMANAGER = System.getenv("FOGSCALE_SERVICES_TASKMANAGER");
    private static final Set<String> SERVICES_GROUPS =
            new HashSet<>(Arrays.asList(System.getenv("FOGSCALE_SERVICES_GROUPS").split(",")));

    @Override
    public Collection<SlotAssignment> matchSlotSharingGroupWithSlots(
            Collection<ExecutionSlotSharingGroup> groups, Collection<PhysicalSlot> freeSlots) {
        Deque<PhysicalSlot> fogFirst = fogFirst(freeSlots);
        List<SlotAssignment> assignments = new ArrayList<>();
        for (ExecutionSlotSharingGroup group : groups) {
            boolean serves = SERVICES_GROUPS.contains(group.getSlotSharingGroup().getSlotSharingGroupName());
            assignments.add(new SlotAssignment(serves ? fogFirst.removeLast() : fogFirst.removeFirst(), group));
        }
        return assignments;
    }

    private static Deque<PhysicalSlot> fogFirst(Collection<PhysicalSlot> slots) {
        List<PhysicalSlot> sorted = new ArrayList<>(slots);
        sorted.sort(Comparator
                .<PhysicalSlot, Boolean>comparing(slot -> taskManager(slot).equals(SERVICES_TASKMANAGER))
                .thenComparing(slot -> !NodesInUse.contains(taskManager(slot)))
                .thenComparing(SlotsBalancedSlotMatchingResolver::taskManager)
                .thenComparing(PhysicalSlot::getPhysicalSlotNumber));
        return new ArrayDeque<>(sorted);
    }

    private static String taskManager(PhysicalSlot slot) {
        return slot.getTaskManagerLocation().getResourceID().getResourceIdString();
    }
}
