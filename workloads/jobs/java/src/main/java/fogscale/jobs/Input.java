package fogscale.jobs;

/** One record of the input topic, with what its output must tell of it. */
public class Input {
    public byte[] key;
    public byte[] value;
    /** Of the producer; empty where another program sent the record. */
    public String run;
    public long number;
    /** When the record was due by the producer's clock. */
    public long dueMs;
    /** When the job read it. */
    public long readMs;

    public Input() {}

    public Input(byte[] key, byte[] value, String run, long number, long dueMs, long readMs) {
        this.key = key;
        this.value = value;
        this.run = run;
        this.number = number;
        this.dueMs = dueMs;
        this.readMs = readMs;
    }
}
