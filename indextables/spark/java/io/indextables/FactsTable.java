package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** What is known of a table, as a table: t.history, t.splits, t.partitions, t.xrefs. */
final class FactsTable implements SupportsRead {
    private static final List KINDS = Arrays.asList("history", "splits", "partitions", "xrefs");

    private final String name;
    private final ObjectNode request;
    private final StructType schema;

    FactsTable(ObjectNode request, Identifier ident) {
        this.name = String.join(".", ident.namespace()) + "." + ident.name();
        this.request = request;
        request.put("kind", ident.name().toLowerCase());
        this.schema =
            (StructType) DataType.fromJson(Bridge.ask("factsSchema", request).get("schema").toString());
    }

    static boolean isOne(Identifier ident) {
        return KINDS.contains(ident.name().toLowerCase());
    }

    /** The table of ours whose facts a name asks for; null where it asks for no such thing. */
    static Entry ownerOf(CatalogPlugin catalog, Identifier ident) {
        String[] parts = ident.namespace();
        if (!isOne(ident) || parts.length == 0 || parts.length > 2) {
            return null;
        }
        String database =
            parts.length == 2
                ? parts[0]
                : SparkSession.active().sessionState().catalog().getCurrentDatabase();
        try {
            Entry entry =
                Entry.find(
                    catalog, Identifier.of(new String[] {database}, parts[parts.length - 1]));
            return entry.isOurs() ? entry : null;
        } catch (NoSuchTableException missing) {
            return null;
        }
    }

    public String name() {
        return name;
    }

    public StructType schema() {
        return schema;
    }

    public Set capabilities() {
        return EnumSet.of(TableCapability.BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return new Rows(request, schema);
    }

    /** Asked when the query is planned, so that a view or cache tells the truth of its time. */
    static final class Rows implements ScanBuilder, LocalScan {
        private final ObjectNode request;
        private final StructType schema;

        Rows(ObjectNode request, StructType schema) {
            this.request = request;
            this.schema = schema;
        }

        public Scan build() {
            return this;
        }

        public StructType readSchema() {
            return schema;
        }

        public InternalRow[] rows() {
            JsonNode answer = Bridge.ask("facts", request);
            return ScanPlan.ofAnswer(answer, schema).knownRows();
        }
    }
}
