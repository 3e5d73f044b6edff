package fogscale.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What is left in the JVM for whoever gives slots away. */
class NodesTest {
    @AfterEach
    void forget() {
        System.clearProperty(Nodes.PROPERTY);
    }

    @Test
    void namesStayUntilOthersAreTold() {
        Nodes.use("fog1,fog2");
        assertEquals("fog1,fog2", System.getProperty(Nodes.PROPERTY));
        Nodes.use("services1");
        assertEquals("services1", System.getProperty(Nodes.PROPERTY));
        Nodes.use("all");
        assertNull(System.getProperty(Nodes.PROPERTY));
    }

    @Test
    void whatIsNoListOfNamesChangesNothing() {
        Nodes.use("fog1");
        for (String wrong : new String[] {"", "fog1,", "fog1 fog2", ",", "fog1,$(x)"}) {
            assertThrows(BadArgument.class, () -> Nodes.use(wrong));
        }
        assertEquals("fog1", System.getProperty(Nodes.PROPERTY));
    }
}
