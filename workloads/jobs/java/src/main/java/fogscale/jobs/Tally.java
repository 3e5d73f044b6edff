package fogscale.jobs;

/**
 * Which records a result speaks of, without a list of them: how many, the sum of their numbers, and a sum of scrambled numbers.
 * Over all results of a run these add up to the run's own only if every record was counted exactly once.
 */
public class Tally {
    public String run = "";
    public long records;
    public long sum;
    public long mix;
    /** Of the earliest and of the latest record. */
    public long firstDueMs = Long.MAX_VALUE;
    public long dueMs = Long.MIN_VALUE;
    public long readMs = Long.MIN_VALUE;

    public static Tally of(Input input) {
        Tally tally = new Tally();
        tally.run = input.run;
        tally.records = 1;
        tally.sum = input.number;
        tally.mix = scrambled(input.number);
        tally.firstDueMs = tally.dueMs = input.dueMs;
        tally.readMs = input.readMs;
        return tally;
    }

    public Tally add(Tally other) {
        run = other.records == 0 ? run : other.run;
        records += other.records;
        sum += other.sum;
        mix += other.mix;
        firstDueMs = Math.min(firstDueMs, other.firstDueMs);
        dueMs = Math.max(dueMs, other.dueMs);
        readMs = Math.max(readMs, other.readMs);
        return this;
    }

    /** SplitMix64 (Steele, Lea and Flood 2014). */
    static long scrambled(long number) {
        long x = number + 0x9E3779B97F4A7C15L;
        x = (x ^ (x >>> 30)) * 0xBF58476D1CE4E5B9L;
        x = (x ^ (x >>> 27)) * 0x94D049BB133111EBL;
        return x ^ (x >>> 31);
    }
}
