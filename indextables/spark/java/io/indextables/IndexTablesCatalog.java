package io.indextables;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The catalog "indextables": a table's name is its path, SELECT * FROM indextables.`/a/path`. */
public class IndexTablesCatalog extends CatalogEdge {
    private String name = "indextables";

    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
    }

    public String name() {
        return name;
    }

    public Identifier[] listTables(String[] namespace) {
        return new Identifier[0];
    }

    public Table loadTable(Identifier ident) throws NoSuchTableException {
        return load(ident, purpose(ident));
    }

    public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
        ObjectNode extra = Bridge.object();
        extra.put("version", version);
        return load(ident, extra);
    }

    public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
        ObjectNode extra = Bridge.object();
        extra.put("timestampMicros", timestamp);
        return load(ident, extra);
    }

    public boolean tableExists(Identifier ident) {
        return Bridge.ask("exists", request(ident)).get("exists").asBoolean();
    }

    public Table createTable(
        Identifier ident, StructType schema, Transform[] partitions, Map properties) {
        Bridge.ask("create", declared(ident, schema, partitions, properties));
        return new IndexTable(request(ident));
    }

    public StagedTable stageCreate(
        Identifier ident, StructType schema, Transform[] partitions, Map properties) {
        ObjectNode request = declared(ident, schema, partitions, properties);
        ((ObjectNode) request.get("options")).put("__create", "true");
        return new Staged(request);
    }

    public StagedTable stageReplace(
        Identifier ident, StructType schema, Transform[] partitions, Map properties) {
        ObjectNode request = declared(ident, schema, partitions, properties);
        ((ObjectNode) request.get("options")).put("__overwrite", "all");
        return new Staged(request);
    }

    public StagedTable stageCreateOrReplace(
        Identifier ident, StructType schema, Transform[] partitions, Map properties) {
        return stageReplace(ident, schema, partitions, properties);
    }

    /** A table that begins with its first write; until then there is nothing to undo. */
    static final class Staged extends IndexTable implements StagedTable {
        Staged(ObjectNode request) {
            super(request);
        }

        public void commitStagedChanges() {}

        public void abortStagedChanges() {}
    }

    private static ObjectNode declared(
        Identifier ident, StructType schema, Transform[] partitions, Map properties) {
        ObjectNode request = IndexTable.locate(properties);
        ((ObjectNode) request.get("options")).put("path", path(ident));
        request.put("declaredSchema", schema.json());
        request.put("forWrite", true);
        request.set("partitionColumns", columns(partitions));
        return request;
    }

    static ArrayNode columns(Transform[] partitions) {
        ArrayNode names = Bridge.JSON.createArrayNode();
        for (int i = 0; i < partitions.length; i++) {
            names.add(partitionColumn(partitions[i]));
        }
        return names;
    }

    public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
        ObjectNode request = request(ident);
        ObjectNode set = request.putObject("set");
        ArrayNode unset = request.putArray("unset");
        for (int i = 0; i < changes.length; i++) {
            if (changes[i] instanceof TableChange.SetProperty) {
                TableChange.SetProperty change = (TableChange.SetProperty) changes[i];
                set.put(change.property(), change.value());
            } else if (changes[i] instanceof TableChange.RemoveProperty) {
                unset.add(((TableChange.RemoveProperty) changes[i]).property());
            } else {
                throw new UnsupportedOperationException(
                    "indextables: ALTER TABLE can only SET and UNSET TBLPROPERTIES");
            }
        }
        Bridge.ask("alter", request);
        return loadTable(ident);
    }

    public boolean dropTable(Identifier ident) {
        throw new UnsupportedOperationException(
            "indextables: a table is its files; delete the folder " + path(ident) + " to drop it");
    }

    public void renameTable(Identifier from, Identifier to) {
        throw new UnsupportedOperationException("indextables: a table's name is its path");
    }

    private static String partitionColumn(Transform transform) {
        if (!"identity".equals(transform.name())) {
            throw new UnsupportedOperationException(
                "indextables: partition by plain columns, not by " + transform.describe());
        }
        NamedReference reference = transform.references()[0];
        return String.join(".", reference.fieldNames());
    }

    Table load(Identifier ident, ObjectNode extra) throws NoSuchTableException {
        ObjectNode request = request(ident);
        request.setAll(extra);
        return new IndexTable(request);
    }

    private static ObjectNode request(Identifier ident) {
        Map options = new HashMap();
        options.put("path", path(ident));
        return IndexTable.locate(options);
    }

    private static String path(Identifier ident) {
        return ident.namespace().length == 0
            ? ident.name()
            : String.join(".", ident.namespace()) + "." + ident.name();
    }
}
