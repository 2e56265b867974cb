package io.indextables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;

/**
 * How Spark loads a table before 4.3: by one call for each purpose.
 *
 * A DataFrame that is read and one that is saved load their table by the same call. Both ask the
 * provider for the identifier just before, in the same thread, and a read asks it for a version
 * as well. So the identifier that was asked for last, with no question for a version after it, is
 * the one that is saved to.
 */
abstract class CatalogEdge implements StagingTableCatalog {
    private static final ThreadLocal SAVED = new ThreadLocal();

    abstract Table load(Identifier ident, ObjectNode extra) throws NoSuchTableException;

    static Identifier named(Identifier ident) {
        SAVED.set(ident);
        return ident;
    }

    static void reads() {
        SAVED.remove();
    }

    static ObjectNode purpose(Identifier ident) {
        ObjectNode extra = Bridge.object();
        if (SAVED.get() == ident) {
            extra.put("forWrite", true);
            extra.put("byName", true);
        }
        SAVED.remove();
        return extra;
    }

    /** INSERT and its kind, whose columns Spark matches with the table's. */
    public Table loadTable(Identifier ident, Set privileges) throws NoSuchTableException {
        ObjectNode extra = Bridge.object();
        extra.put("forWrite", true);
        extra.put("byName", false);
        return load(ident, extra);
    }
}
