package fogscale.jobs;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a program was told on its command line: `--name value`, only names that it declares. */
public final class Arguments {
    /** Settings of Kafka's clients go by their own names, after this. */
    public static final String KAFKA_PREFIX = "kafka.";

    private final Map<String, String> values = new HashMap<>();
    private final Map<String, String> kafka = new LinkedHashMap<>();

    private Arguments() {}

    public static Arguments read(List<Option> options, boolean takesKafka, String... words) {
        Arguments arguments = new Arguments();
        options.forEach(option -> arguments.values.put(option.name(), option.usual()));
        for (int at = 0; at < words.length; at += 2) {
            String name = nameIn(words[at]);
            if (at + 1 == words.length) {
                throw new BadArgument("--" + name + " needs a value after it");
            }
            if (takesKafka && name.startsWith(KAFKA_PREFIX)) {
                arguments.kafka.put(name.substring(KAFKA_PREFIX.length()), words[at + 1]);
            } else if (arguments.values.containsKey(name)) {
                arguments.values.put(name, words[at + 1]);
            } else {
                throw new BadArgument(unknown("setting", name, options.stream().map(Option::name).toList()));
            }
        }
        for (Option option : options) {
            if (arguments.values.get(option.name()) == null) {
                throw new BadArgument("--" + option.name() + " is missing: " + option.meaning());
            }
        }
        return arguments;
    }

    private static String nameIn(String word) {
        if (!word.startsWith("--") || word.length() == 2) {
            throw new BadArgument("'" + word + "' is not a setting: write --name value");
        }
        return word.substring(2);
    }

    public static boolean askForHelp(String... words) {
        return Arrays.asList(words).contains("--help");
    }

    public String text(String name) {
        return values.get(name);
    }

    /** Kafka's own settings. */
    public Map<String, String> kafka() {
        return kafka;
    }

    public long number(String name, long least, long most) {
        return whole("--" + name, values.get(name), least, most);
    }

    static long whole(String what, String text, long least, long most) {
        try {
            long number = Long.parseLong(text);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException notANumber) {
            // Told below, as is a number out of bounds.
        }
        throw new BadArgument(what + " must be a whole number from " + least + " to " + most + ", not '" + text + "'");
    }

    public boolean flag(String name) {
        return choice(name, "true", "false").equals("true");
    }

    public String choice(String name, String... possible) {
        String value = values.get(name);
        if (!Arrays.asList(possible).contains(value)) {
            throw new BadArgument("--" + name + ": " + unknown("value", value, Arrays.asList(possible)));
        }
        return value;
    }

    /** One line that names what is known, and what was probably meant. */
    public static String unknown(String kind, String name, Collection<String> known) {
        List<String> sorted = new ArrayList<>(known);
        sorted.sort(null);
        int farthest = Math.max(2, name.length() / 3);
        return sorted.stream()
                .filter(each -> distance(each, name) <= farthest)
                .min((one, other) -> distance(one, name) - distance(other, name))
                .map(near -> "unknown " + kind + " '" + name + "': did you mean '" + near + "'?")
                .orElse("unknown " + kind + " '" + name + "'; known are " + String.join(", ", sorted));
    }

    /** Letters to change, add or leave out (Levenshtein 1966). */
    private static int distance(String one, String other) {
        int[] row = new int[other.length() + 1];
        Arrays.setAll(row, at -> at);
        for (int i = 1; i <= one.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= other.length(); j++) {
                int changed = diagonal + (one.charAt(i - 1) == other.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(changed, 1 + Math.min(row[j], row[j - 1]));
            }
        }
        return row[other.length()];
    }

    public static String help(String usage, List<Option> options) {
        StringBuilder text = new StringBuilder(usage).append("\n\n");
        for (Option option : options) {
            String usual = option.usual() == null ? "must be given" : option.usual().isEmpty() ? "none" : option.usual();
            text.append(String.format("  --%-24s %s [%s]%n", option.name(), option.meaning(), usual));
        }
        return text.toString();
    }
}
