package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.collection.mutable.ListBuffer;

/** Collects what Spark offers for one scan and asks Python which of it the reader will honour. */
public class IndexTableScanBuilder extends FilterEdge implements SupportsPushDownTopN {
    private final ScanRequest request;
    private final ObjectNode last = Bridge.object();
    private StructType schema;
    private ObjectNode asked;
    private JsonNode answer;
    private ScanPlan known;
    private boolean aggregated;

    IndexTableScanBuilder(ObjectNode request, StructType schema) {
        super(schema);
        this.request = new ScanRequest(request);
        this.schema = schema;
    }

    public Seq pushFilters(Seq filters) {
        ObjectNode more = Bridge.object();
        more.set("filters", CatalystJson.list(filters));
        request.add(more);
        JsonNode accepted = request.ask("open", more).get("accepted");
        ListBuffer rest = new ListBuffer();
        for (int i = 0; i < filters.size(); i++) {
            if (!((JsonNode) accepted.get(i)).asBoolean()) {
                rest.addOne(filters.apply(i));
            }
        }
        return rest.toList();
    }

    public Predicate[] pushedFilters() {
        return new Predicate[0];
    }

    public void pruneColumns(StructType required) {
        if (!aggregated) {
            schema = readable(required);
        }
    }

    public boolean pushLimit(int limit) {
        last.put("limit", limit);
        return true;
    }

    /** The best rows by relevance: each split gives its best, Spark sorts those. */
    public boolean pushTopN(SortOrder[] orders, int limit) {
        if (aggregated
            || orders.length == 0
            || orders[0].direction() != SortDirection.DESCENDING
            || !(orders[0].expression() instanceof NamedReference)) {
            return false;
        }
        String[] name = ((NamedReference) orders[0].expression()).fieldNames();
        if (name.length != 1 || !name[0].equals("_score")) {
            return false;
        }
        last.put("bestScores", limit);
        last.put("withTies", orders.length > 1);
        return true;
    }

    public boolean isPartiallyPushed() {
        return true;
    }

    public boolean supportCompletePushDown(Aggregation aggregation) {
        JsonNode found = askAggregate(aggregation);
        return found != null && found.has("rows");
    }

    public boolean pushAggregation(Aggregation aggregation) {
        JsonNode found = askAggregate(aggregation);
        if (found == null || !found.get("accepted").asBoolean()) {
            return false;
        }
        request.add(asked);
        request.use(found.get("aggregated"));
        schema = (StructType) DataType.fromJson(found.get("schema").toString());
        aggregated = true;
        known = found.has("rows") ? ScanPlan.ofAnswer(found, schema) : null;
        return true;
    }

    /** What Python says to this aggregation, asked once; null where it cannot even be told. */
    private JsonNode askAggregate(Aggregation aggregation) {
        ObjectNode question = ConnectorJson.aggregation(aggregation);
        if (question == null) {
            return null;
        }
        if (!question.equals(asked)) {
            answer = request.ask("aggregate", question);
            asked = question;
        }
        return answer;
    }

    public Scan build() {
        last.put("output", schema.json());
        request.add(last);
        return new IndexTableScan(request, last, schema, known);
    }
}
