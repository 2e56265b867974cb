package io.indextables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableContext;
import org.apache.spark.sql.connector.catalog.TimeTravel;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** How Spark loads a table since 4.3: one call, whose context says for what and as of when. */
abstract class CatalogEdge implements StagingTableCatalog {
    abstract Table load(Identifier ident, ObjectNode extra) throws NoSuchTableException;

    /** Spark says at loading what a table is wanted for; nothing has to be remembered. */
    static Identifier named(Identifier ident) {
        return ident;
    }

    static void reads() {}

    static ObjectNode purpose(Identifier ident) {
        return Bridge.object();
    }

    /** Spark passes this option on only for DataFrames, which bring names; INSERT does not. */
    public Set tableStateOptionKeys() {
        return Collections.singleton("path");
    }

    public Table loadTable(Identifier ident, TableContext context, CaseInsensitiveStringMap options)
        throws NoSuchTableException {
        ObjectNode extra = Bridge.object();
        if (!context.writePrivileges().isEmpty()) {
            extra.put("forWrite", true);
            extra.put("byName", options.containsKey("path"));
        }
        Object moment = context.timeTravel().orElse(null);
        if (moment instanceof TimeTravel.AsOfVersion) {
            extra.put("version", ((TimeTravel.AsOfVersion) moment).version());
        } else if (moment instanceof TimeTravel.AsOfTimestamp) {
            extra.put("timestampMicros", ((TimeTravel.AsOfTimestamp) moment).micros());
        }
        return load(ident, extra);
    }
}
