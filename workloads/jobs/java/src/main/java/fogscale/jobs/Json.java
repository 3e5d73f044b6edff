package fogscale.jobs;

import java.io.IOException;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/** JSON by the parser that Flink brings. */
final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    /** The object that the bytes are; otherwise an exception that says why they are none. */
    static JsonNode object(byte[] bytes) throws NotUsable {
        try {
            JsonNode node = MAPPER.readTree(bytes);
            if (node != null && node.isObject()) {
                return node;
            }
        } catch (IOException error) {
            // Told below; the parser's own message quotes the whole record.
        }
        throw new NotUsable("not a JSON object");
    }

    static double number(JsonNode object, String field) throws NotUsable {
        JsonNode node = object.get(field);
        if (node == null || !node.isNumber()) {
            throw new NotUsable("no number '" + field + "'");
        }
        return node.doubleValue();
    }

    static String text(JsonNode object, String field) throws NotUsable {
        JsonNode node = object.get(field);
        if (node == null || !node.isTextual()) {
            throw new NotUsable("no text '" + field + "'");
        }
        return node.textValue();
    }

    static String quoted(String text) {
        StringBuilder quoted = new StringBuilder(text.length() + 2).append('"');
        for (int at = 0; at < text.length(); at++) {
            char letter = text.charAt(at);
            if (letter == '"' || letter == '\\') {
                quoted.append('\\').append(letter);
            } else if (letter < ' ') {
                quoted.append(String.format("\\u%04x", (int) letter));
            } else {
                quoted.append(letter);
            }
        }
        return quoted.append('"').toString();
    }
}
