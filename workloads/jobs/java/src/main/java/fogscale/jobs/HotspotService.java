package fogscale.jobs;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Tells the sight nearest to a place, to whoever asks: a line `longitude,latitude` is answered by a line of JSON, in order.
 * Needs nothing but this jar: `java -cp fogscale-jobs-1.jar fogscale.jobs.HotspotService --address 0.0.0.0`.
 */
public final class HotspotService implements AutoCloseable {
    private static final List<Option> OPTIONS = List.of(
            new Option("address", "127.0.0.1", "where to listen"), new Option("port", "9870", "0: any that is free"));
    private final ServerSocket listener;

    public HotspotService(String address, int port) throws IOException {
        listener = new ServerSocket(port, 64, InetAddress.getByName(address));
    }

    public static void main(String[] words) throws IOException {
        if (Arguments.askForHelp(words)) {
            System.out.print(Arguments.help("Answers 'longitude,latitude' with the nearest sight.", OPTIONS));
            return;
        }
        try {
            Arguments arguments = Arguments.read(OPTIONS, false, words);
            HotspotService service = new HotspotService(arguments.text("address"), (int) arguments.number("port", 0, 65_535));
            System.out.println("listening on port " + service.port());
            service.serve();
        } catch (BadArgument error) {
            System.err.println("error: " + error.getMessage());
            System.exit(2);
        }
    }

    public int port() {
        return listener.getLocalPort();
    }

    /** Until it is closed. A thread for each connection: there is one per instance of the job. */
    public void serve() throws IOException {
        while (!listener.isClosed()) {
            Socket client = listener.accept();
            Thread thread = new Thread(() -> answer(client), "client");
            thread.setDaemon(true);
            thread.start();
        }
    }

    private static void answer(Socket client) {
        try (client) {
            client.setTcpNoDelay(true);
            BufferedReader questions =
                    new BufferedReader(new InputStreamReader(client.getInputStream(), StandardCharsets.UTF_8));
            BufferedWriter answers =
                    new BufferedWriter(new OutputStreamWriter(client.getOutputStream(), StandardCharsets.UTF_8));
            for (String line = questions.readLine(); line != null; line = questions.readLine()) {
                answers.write(answer(line));
                answers.write('\n');
                if (!questions.ready()) {
                    answers.flush();
                }
            }
        } catch (IOException gone) {
            // The client asks again over a new connection.
        }
    }

    static String answer(String line) {
        try {
            int comma = line.indexOf(',');
            return Hotspots.nearest(
                    Double.parseDouble(line.substring(0, Math.max(comma, 0))), Double.parseDouble(line.substring(comma + 1)));
        } catch (NumberFormatException error) {
            return "{\"fault\":\"not a place\"}";
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
    }
}
