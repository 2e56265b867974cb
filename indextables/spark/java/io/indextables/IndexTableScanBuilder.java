package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.collection.mutable.ListBuffer;

/** Collects what Spark offers for one scan and asks Python which of it the reader will honour. */
public class IndexTableScanBuilder
    implements SupportsPushDownCatalystFilters,
        SupportsPushDownRequiredColumns,
        SupportsPushDownLimit,
        SupportsPushDownAggregates {
    private final ObjectNode request;
    private StructType schema;
    private StructType aggregated;
    private JsonNode rows;

    IndexTableScanBuilder(ObjectNode request, StructType schema) {
        this.request = request;
        this.schema = schema;
    }

    public Seq pushFilters(Seq filters) {
        request.set("filters", CatalystJson.list(filters));
        JsonNode answer = Bridge.ask("filters", request);
        request.set("accepted", answer.get("accepted"));
        ListBuffer rest = new ListBuffer();
        for (int i = 0; i < filters.size(); i++) {
            if (!((JsonNode) answer.get("accepted").get(i)).asBoolean()) {
                rest.addOne(filters.apply(i));
            }
        }
        return rest.toList();
    }

    public Predicate[] pushedFilters() {
        return new Predicate[0];
    }

    public void pruneColumns(StructType required) {
        schema = required;
    }

    public boolean pushLimit(int limit) {
        request.put("limit", limit);
        return true;
    }

    public boolean isPartiallyPushed() {
        return true;
    }

    public boolean supportCompletePushDown(Aggregation aggregation) {
        JsonNode answer = askAggregate(aggregation, request.deepCopy());
        return answer != null && answer.has("rows");
    }

    public boolean pushAggregation(Aggregation aggregation) {
        ObjectNode asked = request.deepCopy();
        JsonNode answer = askAggregate(aggregation, asked);
        if (answer == null || !answer.get("accepted").asBoolean()) {
            return false;
        }
        request.set("groupBy", asked.get("groupBy"));
        request.set("aggregates", asked.get("aggregates"));
        aggregated = (StructType) DataType.fromJson(answer.get("schema").toString());
        rows = answer.get("rows");
        return true;
    }

    /** What Python says to this aggregation; null where it cannot even be told. */
    private static JsonNode askAggregate(Aggregation aggregation, ObjectNode asked) {
        ArrayNode groups = asked.putArray("groupBy");
        Expression[] keys = aggregation.groupByExpressions();
        for (int i = 0; i < keys.length; i++) {
            JsonNode key = ConnectorJson.node(keys[i]);
            if (key == null) {
                return null;
            }
            groups.add(key);
        }
        ArrayNode functions = asked.putArray("aggregates");
        AggregateFunc[] wanted = aggregation.aggregateExpressions();
        for (int i = 0; i < wanted.length; i++) {
            ObjectNode function = functions.addObject();
            function.put("function", wanted[i].getClass().getSimpleName());
            function.put("distinct", wanted[i].toString().contains("DISTINCT"));
            Expression[] children = wanted[i].children();
            JsonNode measure = children.length == 1 ? ConnectorJson.node(children[0]) : null;
            if (children.length != 0 && measure == null) {
                return null;
            }
            function.set("measure", measure);
        }
        return Bridge.ask("aggregate", asked);
    }

    public Scan build() {
        StructType output = aggregated == null ? schema : aggregated;
        request.put("output", output.json());
        return rows == null
            ? (Scan) new IndexTableScan(request, output)
            : (Scan) new KnownRows(request, output, rows);
    }
}
