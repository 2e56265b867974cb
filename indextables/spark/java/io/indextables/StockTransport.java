package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceCreationResult;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/**
 * The way to Python where there is no Python driver: Spark's own workers for Python data sources.
 *
 * A question is an option of the source, its answer the metadata of the schema that the source
 * gives; a plan is the reader it makes. Used on servers of Spark Connect.
 */
final class StockTransport implements Bridge.Callback {
    static final StockTransport INSTANCE = new StockTransport();

    private StockTransport() {}

    public String ask(String verb, String json) {
        Map options = new HashMap();
        options.put("__verb", verb);
        options.put("__ask", json);
        Option none = Option.empty();
        StructType answer = create(options, none).schema();
        return answer.fields()[0].metadata().getString("answer");
    }

    public byte[] fetch(String verb, String json) {
        throw new UnsupportedOperationException("indextables: plans are read, not fetched, here");
    }

    public Object plan(String command, String session) {
        throw new UnsupportedOperationException("indextables: use indextables.sql on Spark Connect");
    }

    /** The plan of one scan, made in a worker. */
    static PythonDataSourceReadInfo read(ObjectNode request, StructType output) {
        Map options = new HashMap();
        options.put("__plan", request.toString());
        options.put("path", path(request));
        PythonDataSourceCreationResult made = create(options, Option.apply(output));
        return source().createReadInfoInPython(made, output, false);
    }

    private static String path(ObjectNode request) {
        JsonNode path = request.get("options").get("path");
        return path == null ? "" : path.asText();
    }

    private static PythonDataSourceCreationResult create(Map options, Option schema) {
        return source()
            .createDataSourceInPython(Python.NAME, new CaseInsensitiveStringMap(options), schema);
    }

    private static UserDefinedPythonDataSource source() {
        return Python.source().source();
    }
}
