package fogscale.jobs;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;

/**
 * Asks a HotspotService over one connection. Questions may be asked before earlier ones are answered; answers come in order.
 * Once the connection fails, so do all questions: whoever asks makes a new client.
 */
final class HotspotClient implements AutoCloseable {
    private final Socket socket = new Socket();
    private final OutputStream questions;
    private final Queue<CompletableFuture<String>> waiting = new ArrayDeque<>();
    private IOException failure;

    HotspotClient(String host, int port, int timeoutMs) throws IOException {
        socket.connect(new InetSocketAddress(host, port), timeoutMs);
        socket.setTcpNoDelay(true);
        questions = socket.getOutputStream();
        Thread thread = new Thread(this::listen, "hotspot answers");
        thread.setDaemon(true);
        thread.start();
    }

    CompletableFuture<String> ask(double longitude, double latitude) {
        CompletableFuture<String> answer = new CompletableFuture<>();
        synchronized (waiting) {
            if (failure != null) {
                answer.completeExceptionally(failure);
                return answer;
            }
            waiting.add(answer);
            try {
                questions.write((longitude + "," + latitude + "\n").getBytes(StandardCharsets.US_ASCII));
            } catch (IOException error) {
                fail(error);
            }
        }
        return answer;
    }

    private void listen() {
        try {
            BufferedReader answers = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            for (String line = answers.readLine(); line != null; line = answers.readLine()) {
                CompletableFuture<String> answered;
                synchronized (waiting) {
                    answered = waiting.remove();
                }
                answered.complete(line);
            }
            fail(new IOException("the service closed the connection"));
        } catch (IOException error) {
            fail(error);
        }
    }

    private void fail(IOException error) {
        synchronized (waiting) {
            failure = error;
            waiting.forEach(answer -> answer.completeExceptionally(error));
            waiting.clear();
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
