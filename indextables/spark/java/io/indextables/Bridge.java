package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The one door between Spark's planner and the planner in Python.
 *
 * Java asks, Python answers: a verb and a JSON document go over, a JSON document comes back. All
 * decisions are taken in Python; the classes of this package only carry them. A failure comes back
 * as {"error": text} and is thrown here as IllegalArgumentException, so that users see the text
 * and no stack of the bridge.
 */
public final class Bridge {
    /** Implemented by a Python object. */
    public interface Callback {
        String ask(String verb, String json);

        byte[] fetch(String verb, String json);

        Object plan(String command, String session);
    }

    public static final ObjectMapper JSON = new ObjectMapper();
    private static volatile Callback callback;
    private static volatile boolean off;

    private Bridge() {}

    public static void connect(Callback target) {
        callback = target;
        off = false;
    }

    /** Serve no more in this JVM; the Python source of the same name is then found instead. */
    public static void switchOff() {
        off = true;
    }

    static boolean isOff() {
        return off;
    }

    public static JsonNode ask(String verb, JsonNode request) {
        JsonNode answer;
        try {
            answer = JSON.readTree(target().ask(verb, JSON.writeValueAsString(request)));
        } catch (java.io.IOException problem) {
            throw new IllegalStateException("indextables: unreadable answer to " + verb, problem);
        }
        if (answer.has("error")) {
            throw new IllegalArgumentException(answer.get("error").asText());
        }
        return answer;
    }

    public static byte[] fetch(String verb, JsonNode request) {
        try {
            return target().fetch(verb, JSON.writeValueAsString(request));
        } catch (java.io.IOException problem) {
            throw new IllegalStateException("indextables: cannot send " + verb, problem);
        }
    }

    /** Is there no Python driver to ask, only Spark's workers? */
    static boolean isStock() {
        return callback == null;
    }

    /** The result of one of our own SQL commands, as a plan of its rows. */
    static Object plan(String command, String session) {
        Object made = target().plan(command, session);
        if (made instanceof String) {
            throw new IllegalArgumentException((String) made);
        }
        return made;
    }

    public static ObjectNode object() {
        return JSON.createObjectNode();
    }

    private static Callback target() {
        Callback target = callback;
        return target == null ? StockTransport.INSTANCE : target;
    }
}
