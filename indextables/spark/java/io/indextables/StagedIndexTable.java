package io.indextables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;

/**
 * A table that a statement makes or replaces: rows and definition are one commit of its log.
 *
 * With rows, the write is that commit; without, the definition alone. Only then a new table is
 * given its name. Whatever fails before leaves catalog and old table as they were.
 */
final class StagedIndexTable extends IndexTable implements StagedTable {
    private final ObjectNode request;
    private final Entry entry;
    private boolean written;

    StagedIndexTable(ObjectNode request, Entry entry) {
        super(request);
        this.request = request;
        this.entry = entry;
    }

    /** The request with what the statement says the table shall be. */
    static ObjectNode request(
        ObjectNode request, Column[] columns, Transform[] by, Map properties, boolean replaces) {
        ObjectNode definition = Bridge.object();
        definition.put("schema", CatalogV2Util.v2ColumnsToStructType(columns).json());
        definition.set("partitionColumns", Partitioning.columns(by));
        definition.set("clusterBy", Partitioning.clustering(by));
        definition.put("replaces", replaces);
        ObjectNode given = definition.putObject("properties");
        Iterator entries = properties.entrySet().iterator();
        while (entries.hasNext()) {
            Map.Entry entry = (Map.Entry) entries.next();
            given.put((String) entry.getKey(), (String) entry.getValue());
        }
        request.set("definition", definition);
        request.put("forWrite", true);
        ObjectNode options = (ObjectNode) request.get("options");
        options.put("__define", definition.toString());
        options.put(replaces ? "__overwrite" : "__create", replaces ? "all" : "true");
        return request;
    }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        written = true;
        return super.newWriteBuilder(info);
    }

    public void commitStagedChanges() {
        if (!written) {
            Bridge.ask("define", request);
        }
        if (entry != null) {
            entry.publish();
        }
    }

    public void abortStagedChanges() {
        if (entry != null) {
            entry.undo();
        }
    }
}
