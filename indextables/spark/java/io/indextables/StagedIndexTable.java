package io.indextables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

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
    private boolean committed;

    StagedIndexTable(ObjectNode request, Entry entry) {
        super(request);
        this.request = request;
        this.entry = entry;
    }

    /** The request with what the statement says the table shall be. */
    static ObjectNode request(
        ObjectNode request, Column[] columns, Transform[] by, Map properties, boolean replaces) {
        ObjectNode definition = Bridge.object();
        definition.put("schema", schema(columns).json());
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

    /** Texts of limited length are texts with a note, by which Spark checks and pads them. */
    private static StructType schema(Column[] columns) {
        StructType said = CatalogV2Util.v2ColumnsToStructType(columns);
        StructType out = CharVarcharUtils.replaceCharVarcharWithStringInSchema(said);
        for (int i = 0; i < out.length(); i++) {
            StructField field = out.fields()[i];
            if (field.metadata().contains("__CHAR_VARCHAR_TYPE_STRING")
                && !(field.dataType() instanceof StringType)) {
                throw new UnsupportedOperationException(
                    "indextables: CHAR and VARCHAR cannot stand inside "
                        + field.name()
                        + "; use STRING there");
            }
        }
        return out;
    }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        written = true;
        return super.newWriteBuilder(info);
    }

    public void commitStagedChanges() {
        if (!written) {
            Bridge.ask("define", request);
        }
        committed = true;
        if (entry != null) {
            entry.publish();
        }
    }

    public void abortStagedChanges() {
        if (entry != null) {
            entry.undo(committed);
        }
    }
}
