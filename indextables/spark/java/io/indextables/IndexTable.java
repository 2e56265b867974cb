package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One table at one moment. "request" says which; Python says what it looks like. */
public class IndexTable implements SupportsRead, SupportsWrite, SupportsMetadataColumns {
    private final ObjectNode request;
    private final JsonNode description;

    IndexTable(ObjectNode request) {
        this.request = request;
        this.description = Bridge.ask("describe", request);
    }

    /** The request for a table whose path stands in options or table properties. */
    static ObjectNode locate(Map options) {
        ObjectNode request = Bridge.object();
        ObjectNode target = request.putObject("options");
        Iterator entries = options.entrySet().iterator();
        while (entries.hasNext()) {
            Map.Entry entry = (Map.Entry) entries.next();
            if (entry.getValue() != null) {
                target.put((String) entry.getKey(), entry.getValue().toString());
            }
        }
        addSession(request);
        return request;
    }

    /** Our settings of the session that plans, and what decides how literals are read. */
    private static void addSession(ObjectNode request) {
        SQLConf conf = SQLConf.get();
        ObjectNode session = request.putObject("session");
        scala.collection.Iterator settings = conf.getAllConfs().iterator();
        while (settings.hasNext()) {
            scala.Tuple2 setting = (scala.Tuple2) settings.next();
            String key = (String) setting._1();
            if (key.startsWith("spark.indextables.")) {
                session.put(key, (String) setting._2());
            }
        }
        request.put("timeZone", conf.sessionLocalTimeZone());
        request.put("caseSensitive", conf.caseSensitiveAnalysis());
        request.put("ansi", conf.ansiEnabled());
    }

    public String name() {
        JsonNode entry = request.get("entry");
        String path = "indextables." + description.get("path").asText();
        return entry == null ? path : entry.get("name").asText();
    }

    public StructType schema() {
        return (StructType) DataType.fromJson(description.get("schema").toString());
    }

    public Transform[] partitioning() {
        JsonNode names = description.get("partitionColumns");
        Transform[] out = new Transform[names.size()];
        for (int i = 0; i < out.length; i++) {
            out[i] = Expressions.identity(Partitioning.quoted(((JsonNode) names.get(i)).asText()));
        }
        return out;
    }

    public Map properties() {
        Map out = new HashMap();
        JsonNode given = description.get("properties");
        Iterator names = given.fieldNames();
        while (names.hasNext()) {
            String name = (String) names.next();
            out.put(name, given.get(name).asText());
        }
        return out;
    }

    /** Is this the change feed of a table, which Spark's own Python source reads? */
    private boolean isFeed() {
        return description.has("feed");
    }

    public Set capabilities() {
        if (isFeed()) {
            return EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ);
        }
        EnumSet out =
            EnumSet.of(
                TableCapability.BATCH_READ,
                TableCapability.BATCH_WRITE,
                TableCapability.TRUNCATE,
                TableCapability.OVERWRITE_BY_FILTER,
                TableCapability.OVERWRITE_DYNAMIC);
        out.add(TableCapability.MICRO_BATCH_READ);
        out.add(TableCapability.STREAMING_WRITE);
        if (description.get("acceptAnySchema").asBoolean()) {
            out.add(TableCapability.ACCEPT_ANY_SCHEMA);
        }
        return out;
    }

    public MetadataColumn[] metadataColumns() {
        if (isFeed()) {
            return new MetadataColumn[0];
        }
        return new MetadataColumn[] {
            new Virtual("_indexall", DataTypes.StringType),
            new Virtual("_score", DataTypes.FloatType)
        };
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        if (isFeed()) {
            return Python.scanBuilder(merged(options), schema());
        }
        return new IndexTableScanBuilder(merged(options), schema());
    }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return new IndexTableWriteBuilder(merged(info.options()), info, description);
    }

    private ObjectNode merged(CaseInsensitiveStringMap options) {
        ObjectNode out = request.deepCopy();
        ObjectNode target = (ObjectNode) out.get("options");
        target.setAll((ObjectNode) locate(options.asCaseSensitiveMap()).get("options"));
        if (!target.has("path")) {
            target.put("path", description.get("path").asText());
        }
        addSession(out);
        return out;
    }

    /** A column that exists only while a query asks for it. */
    static final class Virtual implements MetadataColumn {
        private final String name;
        private final DataType dataType;

        Virtual(String name, DataType dataType) {
            this.name = name;
            this.dataType = dataType;
        }

        public String name() {
            return name;
        }

        public DataType dataType() {
            return dataType;
        }

        public boolean isNullable() {
            return true;
        }
    }
}
