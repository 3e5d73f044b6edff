package fogscale.jobs;

/** One `--name value` of a job; without a usual value it must be given. */
public record Option(String name, String usual, String meaning) {
    public static Option needed(String name, String meaning) {
        return new Option(name, null, meaning);
    }
}
