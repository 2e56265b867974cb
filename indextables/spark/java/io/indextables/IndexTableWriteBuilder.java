package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.filter.AlwaysTrue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/**
 * Which rows a write replaces goes to the Python writer as the option "__overwrite": "all",
 * "dynamic", or the conditions as a JSON list of expression trees, never as SQL.
 */
public class IndexTableWriteBuilder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
    private final ObjectNode request;
    private final LogicalWriteInfo info;
    private final JsonNode description;
    private boolean replacing;

    IndexTableWriteBuilder(ObjectNode request, LogicalWriteInfo info, JsonNode description) {
        this.request = request;
        this.info = info;
        this.description = description;
        addPartitionColumns();
    }

    /** The partition columns of a table that this write will create. */
    private void addPartitionColumns() {
        JsonNode names = description.get("partitionColumns");
        if (names.size() > 0) {
            ((ObjectNode) request.get("options")).put("__partitionby", names.toString());
        }
    }

    public WriteBuilder truncate() {
        return replace("all");
    }

    public boolean canOverwrite(Predicate[] predicates) {
        return true;
    }

    public WriteBuilder overwrite(Predicate[] predicates) {
        ArrayNode trees = Bridge.JSON.createArrayNode();
        for (int i = 0; i < predicates.length; i++) {
            if (predicates[i] instanceof AlwaysTrue) {
                continue;
            }
            JsonNode tree = ConnectorJson.node(predicates[i]);
            if (tree == null) {
                throw new IllegalArgumentException(
                    "indextables: cannot decide which rows to overwrite by "
                        + predicates[i].describe()
                        + ". Compare partition columns with literals");
            }
            trees.add(tree);
        }
        return replace(trees.size() == 0 ? "all" : trees.toString());
    }

    public WriteBuilder overwriteDynamicPartitions() {
        return replace("dynamic");
    }

    public Write build() {
        Write write = delegate().build();
        ObjectNode asked = request.deepCopy();
        asked.set("partitionColumns", description.get("partitionColumns"));
        JsonNode wanted = Bridge.ask("distribution", asked);
        boolean free = wanted.get("columns").size() == 0 && wanted.get("sort").size() == 0;
        return free ? write : new Distributed(write, wanted);
    }

    public BatchWrite buildForBatch() {
        return delegate().buildForBatch();
    }

    public StreamingWrite buildForStreaming() {
        return delegate().buildForStreaming();
    }

    private WriteBuilder replace(String what) {
        ((ObjectNode) request.get("options")).put("__overwrite", what);
        replacing = true;
        return this;
    }

    /** A write whose rows Spark first brings together by partition, or sorts. */
    static final class Distributed implements RequiresDistributionAndOrdering {
        private final Write inner;
        private final JsonNode wanted;

        Distributed(Write inner, JsonNode wanted) {
            this.inner = inner;
            this.wanted = wanted;
        }

        public Distribution requiredDistribution() {
            JsonNode names = wanted.get("columns");
            if (names.size() == 0) {
                return wanted.get("partitioned").asBoolean()
                    ? (Distribution) Distributions.unspecified()
                    : (Distribution) Distributions.ordered(requiredOrdering());
            }
            Expression[] keys = new Expression[names.size()];
            for (int i = 0; i < keys.length; i++) {
                keys[i] = column(names, i);
            }
            return Distributions.clustered(keys);
        }

        public boolean distributionStrictlyRequired() {
            return false;
        }

        public long advisoryPartitionSizeInBytes() {
            return wanted.get("bytes").asLong();
        }

        public SortOrder[] requiredOrdering() {
            JsonNode names = wanted.get("sort");
            SortOrder[] out = new SortOrder[names.size()];
            for (int i = 0; i < out.length; i++) {
                out[i] = Expressions.sort(column(names, i), SortDirection.ASCENDING);
            }
            return out;
        }

        private static Expression column(JsonNode names, int i) {
            return Expressions.column(Partitioning.quoted(((JsonNode) names.get(i)).asText()));
        }

        public String description() {
            return inner.description();
        }

        public BatchWrite toBatch() {
            return inner.toBatch();
        }

        public StreamingWrite toStreaming() {
            return inner.toStreaming();
        }

        public CustomMetric[] supportedCustomMetrics() {
            return inner.supportedCustomMetrics();
        }
    }

    private WriteBuilder delegate() {
        WriteBuilder builder = Python.writeBuilder(request, info);
        return replacing ? ((SupportsTruncate) builder).truncate() : builder;
    }
}
