package io.indextables;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** When and what for a table is loaded, as a request says it. */
final class Moment {
    private Moment() {}

    /** SQL and insertInto bring columns by position, so Spark has to see the table's own. */
    static ObjectNode forWrite() {
        ObjectNode extra = Bridge.object();
        extra.put("forWrite", true);
        extra.put("byName", false);
        return extra;
    }

    static ObjectNode version(String version) {
        ObjectNode extra = Bridge.object();
        extra.put("version", version);
        return extra;
    }

    static ObjectNode timestamp(long micros) {
        ObjectNode extra = Bridge.object();
        extra.put("timestampMicros", micros);
        return extra;
    }
}
