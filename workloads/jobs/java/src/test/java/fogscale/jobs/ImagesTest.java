package fogscale.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.ByteArrayOutputStream;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Brightness of pictures that can be checked by hand. */
class ImagesTest {
    private static String result(String head, int... pixels) {
        ByteArrayOutputStream picture = new ByteArrayOutputStream();
        picture.writeBytes(head.getBytes());
        for (int pixel : pixels) {
            picture.write(pixel);
        }
        return Images.brightness(new Input("c".getBytes(), picture.toByteArray(), "r", 1, 2, 3)).result;
    }

    @Test
    void theMeanIsOverAllPixelsAndNothingElse() {
        assertEquals("{\"width\":3,\"height\":2,\"meanBrightness\":101.0000}",
                result("P5\n# camera-001 at 12 ms\n3 2\n255\n", 0, 255, 255, 48, 35, 13));
        assertEquals("{\"width\":1,\"height\":1,\"meanBrightness\":10.0000}", result("P5 1 1 255\n", '\n'));
    }

    @Test
    void whatIsNoPictureSaysSo() {
        for (String head : List.of("", "P", "P6\n1 1\n255\nx", "P5\n2 1\n255\nx", "P5\n1 1\n65535\nx", "P5\n1", "P5 # 1 1 255")) {
            assertEquals("{\"fault\":\"not a PGM picture\"}", result(head));
        }
    }
}
