package io.indextables;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;

/** CREATE TABLE LIKE since Spark 4.2: columns and partitioning are given, the rest is copied. */
abstract class SessionEdge extends DelegatingCatalogExtension implements StagingTableCatalog {
    public Table createTableLike(Identifier ident, TableInfo info, Table source)
        throws TableAlreadyExistsException, NoSuchNamespaceException {
        Map properties = new HashMap();
        Map given = info.properties();
        boolean sameFormat =
            !given.containsKey("provider")
                || given.get("provider").equals(source.properties().get("provider"));
        if (sameFormat) {
            Iterator known = source.properties().entrySet().iterator();
            while (known.hasNext()) {
                Map.Entry property = (Map.Entry) known.next();
                if (!CatalogV2Util.TABLE_RESERVED_PROPERTIES().contains(property.getKey())) {
                    properties.put(property.getKey(), property.getValue());
                }
            }
            properties.put("provider", source.properties().get("provider"));
        }
        properties.putAll(given);
        return createTable(ident, info.columns(), info.partitions(), properties);
    }
}
