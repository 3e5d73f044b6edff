package fogscale.jobs;

import java.nio.charset.StandardCharsets;

/**
 * One record of the output topic. Its value is JSON, the same head for all jobs:
 *
 * <pre>{"by":"map","run":"r","number":7,"dueMs":…,"readMs":…,"doneMs":…,"result":…}
 * {"by":"clickRate","run":"r","records":3,"sum":21,"mix":…,"firstDueMs":…,"dueMs":…,"readMs":…,"doneMs":…,"result":…}</pre>
 *
 * The first is of one record, the second of several (see Tally). `by` is the operator that made it. A result is JSON;
 * {"fault":"…"} where the record could not be used. workloads/jobs/output.py reads both.
 */
public class Output {
    public byte[] key;
    public String by;
    public Tally of;
    /** Whether this is of one record and carries its number, rather than a tally's sums. */
    public boolean single;
    public String result;

    public static Output of(Input input, String by, String result) {
        return output(input.key, by, Tally.of(input), true, result);
    }

    public static Output fault(Input input, String by, String fault) {
        return of(input, by, "{\"fault\":" + Json.quoted(fault) + "}");
    }

    /** Of one record, of which only its tally is left. */
    public static Output fault(Tally one, String by, String fault) {
        return output(new byte[0], by, one, true, "{\"fault\":" + Json.quoted(fault) + "}");
    }

    public static Output of(String key, String by, Tally tally, String result) {
        return output(key.getBytes(StandardCharsets.UTF_8), by, tally, false, result);
    }

    private static Output output(byte[] key, String by, Tally tally, boolean single, String result) {
        Output output = new Output();
        output.key = key;
        output.by = by;
        output.of = tally;
        output.single = single;
        output.result = result;
        return output;
    }

    /** As the producer writes it, so that what audits the input topic audits this one too; null for several records. */
    public byte[] header() {
        return single && of.sum != InputReader.NO_NUMBER ? (of.run + ":" + of.sum).getBytes(StandardCharsets.UTF_8) : null;
    }

    public byte[] value(long doneMs) {
        StringBuilder text = new StringBuilder(160 + result.length());
        text.append("{\"by\":").append(Json.quoted(by)).append(",\"run\":").append(Json.quoted(of.run));
        if (single) {
            text.append(",\"number\":").append(of.sum);
        } else {
            text.append(",\"records\":").append(of.records);
            text.append(",\"sum\":").append(Long.toUnsignedString(of.sum));
            text.append(",\"mix\":").append(Long.toUnsignedString(of.mix));
            text.append(",\"firstDueMs\":").append(of.firstDueMs);
        }
        text.append(",\"dueMs\":").append(of.dueMs).append(",\"readMs\":").append(of.readMs);
        text.append(",\"doneMs\":").append(doneMs).append(",\"result\":").append(result).append('}');
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }
}
