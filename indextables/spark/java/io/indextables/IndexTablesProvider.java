package io.indextables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The name "indextables" in spark.read.format and df.write.format; paths live in our catalog. */
public class IndexTablesProvider implements SupportsCatalogOptions, DataSourceRegister {
    public String shortName() {
        return Bridge.isOff() ? "indextables_switched_off" : "indextables";
    }

    public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
        String path = options.get("path");
        if (path == null) {
            throw new IllegalArgumentException(
                "indextables needs a path: .load(path), .save(path) or option(\"path\", ...)");
        }
        if (options.getBoolean("readChangeFeed", false)) {
            return Identifier.of(new String[] {IndexTablesCatalog.FEED}, path);
        }
        return CatalogEdge.named(Identifier.of(new String[0], path));
    }

    public String extractCatalog(CaseInsensitiveStringMap options) {
        return "indextables";
    }

    public Optional extractTimeTravelVersion(CaseInsensitiveStringMap options) {
        CatalogEdge.reads();
        return Optional.ofNullable(options.get("versionAsOf"));
    }

    public Optional extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
        String moment = options.get("timestampAsOf");
        if (moment != null && moment.trim().isEmpty()) {
            throw new IllegalArgumentException("indextables: timestampAsOf is empty");
        }
        return Optional.ofNullable(moment);
    }

    public boolean supportsExternalMetadata() {
        return true;
    }

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return new IndexTable(IndexTable.locate(options.asCaseSensitiveMap())).schema();
    }

    public Transform[] inferPartitioning(CaseInsensitiveStringMap options) {
        ObjectNode request = IndexTable.locate(options.asCaseSensitiveMap());
        request.put("forWrite", true);
        return new IndexTable(request).partitioning();
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
        ObjectNode request = IndexTable.locate(properties);
        request.put("declaredSchema", schema.json());
        request.set("partitionColumns", Partitioning.columns(partitioning));
        return new IndexTable(request);
    }
}
