package fogscale.jobs;

/** A record that a job cannot use; the reason goes to the output in place of a result. */
public final class NotUsable extends Exception {
    public NotUsable(String reason) {
        super(reason, null, false, false);
    }
}
