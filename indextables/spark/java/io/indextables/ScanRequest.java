package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * What one scan asks of Python.
 *
 * The first question carries everything: table, settings, filters. Its answer gives the scan a
 * handle, and later questions carry the handle and what is new. Python forgets scans that were not
 * asked about for long; it then says so and is told everything again. Spark's workers, which serve
 * where there is no Python driver, share no memory and are told everything each time.
 */
final class ScanRequest {
    private final ObjectNode whole;
    private JsonNode handle;

    ScanRequest(ObjectNode whole) {
        this.whole = whole;
    }

    /** The answer to a question about this scan; the version it was given for stays fixed. */
    JsonNode ask(String verb, ObjectNode more) {
        JsonNode answer = handle == null ? null : Bridge.ask(verb, brief(more));
        if (answer == null || answer.has("gone")) {
            answer = Bridge.ask(verb, with(more));
        }
        if (answer.has("version")) {
            whole.remove("timestampMicros");
            whole.set("version", answer.get("version"));
            use(answer.get("scan"));
        }
        return answer;
    }

    /** Ask about what this handle stands for from now on. */
    void use(JsonNode other) {
        handle = Bridge.isStock() ? null : other;
    }

    /** The plan of this scan, asked for with what was added last. */
    byte[] fetch(ObjectNode more) {
        byte[] answer = handle == null ? null : Bridge.fetch("plan", brief(more));
        if (answer == null || answer[0] == ScanPlan.GONE) {
            answer = Bridge.fetch("plan", with(more));
        }
        return answer;
    }

    /** Keep this for whenever everything has to be told. */
    void add(ObjectNode more) {
        whole.setAll(more);
    }

    ObjectNode whole() {
        return whole;
    }

    private ObjectNode brief(ObjectNode more) {
        ObjectNode out = more.deepCopy();
        out.set("scan", handle);
        return out;
    }

    private ObjectNode with(ObjectNode more) {
        ObjectNode out = whole.deepCopy();
        out.setAll(more);
        return out;
    }

    public boolean equals(Object other) {
        return other instanceof ScanRequest && ((ScanRequest) other).whole.equals(whole);
    }

    public int hashCode() {
        return whole.hashCode();
    }
}
