package fogscale.jobs;

/** Something that whoever starts a job can fix: its message is one line that says what to change. */
public final class BadArgument extends IllegalArgumentException {
    public BadArgument(String message) {
        super(message);
    }
}
