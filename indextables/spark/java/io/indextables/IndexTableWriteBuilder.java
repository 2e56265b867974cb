package io.indextables;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.expressions.filter.AlwaysTrue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** Which rows a write replaces goes to the Python writer as the option "__overwrite". */
public class IndexTableWriteBuilder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
    private final ObjectNode request;
    private final LogicalWriteInfo info;
    private boolean replacing;

    IndexTableWriteBuilder(ObjectNode request, LogicalWriteInfo info) {
        this.request = request;
        this.info = info;
    }

    public WriteBuilder truncate() {
        return replace("all");
    }

    public boolean canOverwrite(Predicate[] predicates) {
        return true;
    }

    public WriteBuilder overwrite(Predicate[] predicates) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < predicates.length; i++) {
            if (predicates[i] instanceof AlwaysTrue) {
                continue;
            }
            if (text.length() > 0) {
                text.append(" AND ");
            }
            text.append("(").append(predicates[i].describe()).append(")");
        }
        return replace(text.length() == 0 ? "all" : "where:" + text);
    }

    public WriteBuilder overwriteDynamicPartitions() {
        return replace("dynamic");
    }

    public Write build() {
        return delegate().build();
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

    private WriteBuilder delegate() {
        WriteBuilder builder = Python.writeBuilder(request, info);
        return replacing ? ((SupportsTruncate) builder).truncate() : builder;
    }
}
