package io.indextables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The catalog "indextables": a table's name is its path, SELECT * FROM indextables.`/a/path`. */
public class IndexTablesCatalog extends CatalogEdge implements FunctionCatalog {
    /** Spark gives no options when it loads a table, so the name says that a feed is wanted. */
    static final String FEED = "__changes";

    private String name = "indextables";

    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
        SearchRules.install(SparkSession.active());
    }

    public String name() {
        return name;
    }

    public Identifier[] listFunctions(String[] namespace) {
        return new Identifier[0];
    }

    public UnboundFunction loadFunction(Identifier ident) throws NoSuchFunctionException {
        if (ident.namespace().length > 0 || !SearchRules.isName(ident.name())) {
            throw new NoSuchFunctionException(ident);
        }
        return new SearchFunction(ident.name());
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
        Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
        stageCreate(ident, columns, partitions, properties).commitStagedChanges();
        return new IndexTable(request(ident));
    }

    public StagedTable stageCreate(
        Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
        return staged(ident, columns, partitions, properties, false);
    }

    public StagedTable stageReplace(
        Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
        return staged(ident, columns, partitions, properties, true);
    }

    public StagedTable stageCreateOrReplace(
        Identifier ident, Column[] columns, Transform[] partitions, Map properties) {
        return staged(ident, columns, partitions, properties, tableExists(ident));
    }

    private static StagedTable staged(
        Identifier ident, Column[] columns, Transform[] by, Map properties, boolean replaces) {
        ObjectNode request = request(ident);
        return new StagedIndexTable(
            StagedIndexTable.request(request, columns, by, properties, replaces), null);
    }

    public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
        Changes.apply(request(ident), changes);
        return loadTable(ident);
    }

    public boolean dropTable(Identifier ident) {
        throw new UnsupportedOperationException(
            "indextables: a table is its files; delete the folder " + path(ident) + " to drop it");
    }

    public void renameTable(Identifier from, Identifier to) {
        throw new UnsupportedOperationException("indextables: a table's name is its path");
    }

    Table load(Identifier ident, ObjectNode extra) throws NoSuchTableException {
        ObjectNode request = request(ident);
        request.setAll(extra);
        return new IndexTable(request);
    }

    private static ObjectNode request(Identifier ident) {
        Map options = new HashMap();
        if (ident.namespace().length == 1 && ident.namespace()[0].equals(FEED)) {
            options.put("path", ident.name());
            options.put("readChangeFeed", "true");
        } else {
            options.put("path", path(ident));
        }
        return IndexTable.locate(options);
    }

    private static String path(Identifier ident) {
        return ident.namespace().length == 0
            ? ident.name()
            : String.join(".", ident.namespace()) + "." + ident.name();
    }
}
