package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Spark's own Python data source of the same table, for writes and for streams. */
final class Python {
    static final String NAME = "indextables_python";

    private Python() {}

    static PythonDataSourceV2 source() {
        PythonDataSourceV2 source = new PythonDataSourceV2();
        source.setShortName(NAME);
        return source;
    }

    static Scan streamingScan(ObjectNode request, StructType schema) {
        return scanBuilder(request, schema).build();
    }

    static ScanBuilder scanBuilder(ObjectNode request, StructType schema) {
        CaseInsensitiveStringMap options = options(request);
        Table table = source().getTable(schema, new Transform[0], options.asCaseSensitiveMap());
        return ((SupportsRead) table).newScanBuilder(options);
    }

    static WriteBuilder writeBuilder(ObjectNode request, LogicalWriteInfo info) {
        CaseInsensitiveStringMap options = options(request);
        Table table =
            source().getTable(info.schema(), new Transform[0], options.asCaseSensitiveMap());
        return ((SupportsWrite) table).newWriteBuilder(new Info(info, options));
    }

    private static CaseInsensitiveStringMap options(ObjectNode request) {
        Map out = new HashMap();
        JsonNode given = request.get("options");
        Iterator names = given.fieldNames();
        while (names.hasNext()) {
            String name = (String) names.next();
            out.put(name, given.get(name).asText());
        }
        if (request.has("session")) {
            out.put("__session", request.get("session").toString());
            out.put("__timezone", request.get("timeZone").asText());
        }
        return new CaseInsensitiveStringMap(out);
    }

    /** The write as Spark described it, with our options. */
    static final class Info implements LogicalWriteInfo {
        private final LogicalWriteInfo inner;
        private final CaseInsensitiveStringMap options;

        Info(LogicalWriteInfo inner, CaseInsensitiveStringMap options) {
            this.inner = inner;
            this.options = options;
        }

        public CaseInsensitiveStringMap options() {
            return options;
        }

        public String queryId() {
            return inner.queryId();
        }

        public StructType schema() {
            return inner.schema();
        }
    }
}
