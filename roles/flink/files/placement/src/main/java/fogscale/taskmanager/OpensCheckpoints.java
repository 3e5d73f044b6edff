package fogscale.taskmanager;

import java.io.IOException;
import java.net.URI;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.runtime.security.SecurityConfiguration;
import org.apache.flink.runtime.security.modules.SecurityModule;
import org.apache.flink.runtime.security.modules.SecurityModuleFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads the file system of checkpoints before a TaskManager asks for work. The first task would do so otherwise: half a second of
 * processor time, three seconds on a fifth of a core, in which a rescaled job stands still. This has nothing to do with security; but
 * security modules are what Flink calls between the two moments, when its file systems are known and nobody knows the TaskManager yet.
 */
public final class OpensCheckpoints implements SecurityModuleFactory {
    private static final Logger LOG = LoggerFactory.getLogger(OpensCheckpoints.class);

    @Override
    public SecurityModule createModule(SecurityConfiguration security) {
        String folder = security.getFlinkConfig().get(CheckpointingOptions.CHECKPOINTS_DIRECTORY);
        return new SecurityModule() {
            @Override
            public void install() {
                if (folder != null) {
                    open(URI.create(folder));
                }
            }

            @Override
            public void uninstall() {}
        };
    }

    /** Asks nothing of the storage itself, which may be away: the first checkpoint tells. */
    private static void open(URI folder) {
        long begun = System.nanoTime();
        try {
            FileSystem.get(folder);
            LOG.info("Loaded the file system of {} in {} ms", folder, (System.nanoTime() - begun) / 1_000_000);
        } catch (IOException error) {
            LOG.warn("The file system of checkpoints could not be loaded yet", error);
        }
    }
}
