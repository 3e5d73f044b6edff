package fogscale.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

/** Questions to the service over real sockets. */
class LookupTest {
    @Test
    void answersComeInTheOrderOfTheQuestions() throws Exception {
        try (HotspotService service = started(); HotspotClient client = new HotspotClient("127.0.0.1", service.port(), 5000)) {
            List<CompletableFuture<String>> answers = new ArrayList<>();
            for (int step = 0; step < 500; step++) {
                answers.add(client.ask(-74.05 + step * 0.0003, 40.68 + step * 0.0003));
            }
            for (int step = 0; step < 500; step++) {
                assertEquals(Hotspots.nearest(-74.05 + step * 0.0003, 40.68 + step * 0.0003), answers.get(step).get());
            }
        }
    }

    @Test
    void whoeverWaitsIsToldThatTheServiceIsGone() throws Exception {
        try (HotspotService service = started()) {
            HotspotClient client = new HotspotClient("127.0.0.1", service.port(), 5000);
            client.close();
            ExecutionException error = assertThrows(ExecutionException.class, () -> client.ask(1, 2).get());
            assertTrue(error.getCause() instanceof IOException);
        }
    }

    @Test
    void aLineThatIsNoPlaceIsAnsweredSo() {
        for (String line : List.of("", "1", ",", "a,b", "1,")) {
            assertEquals("{\"fault\":\"not a place\"}", HotspotService.answer(line));
        }
    }

    private static HotspotService started() throws IOException {
        HotspotService service = new HotspotService("127.0.0.1", 0);
        Thread thread = new Thread(() -> {
            try {
                service.serve();
            } catch (IOException closed) {
                // The test is over.
            }
        });
        thread.setDaemon(true);
        thread.start();
        return service;
    }
}
