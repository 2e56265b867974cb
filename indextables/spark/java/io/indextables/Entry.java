package io.indextables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Utils;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/**
 * What the session's catalog keeps of a table: its name, where it is, whether its files are the
 * catalog's (managed) or the user's (external), and options to reach it. Nothing else: everything
 * that can change is in the table's log.
 */
final class Entry {
    static final String PROVIDER = "indextables";

    private final CatalogTable table;
    private final boolean planned;

    private Entry(CatalogTable table, boolean planned) {
        this.table = table;
        this.planned = planned;
    }

    /** The entry of a name, whatever its format. */
    static Entry find(CatalogPlugin catalog, Identifier ident) throws NoSuchTableException {
        if (ident.namespace().length != 1) {
            throw new NoSuchTableException(ident);
        }
        Table found = ((TableCatalog) catalog).loadTable(ident);
        if (!(found instanceof V1Table)) {
            return new Entry(null, false);
        }
        return new Entry(((V1Table) found).v1Table(), false);
    }

    /** An entry that a statement is about to make; its place must be free if it is to be managed. */
    static Entry planned(Identifier ident, Map properties) {
        SessionCatalog catalog = catalog();
        if (!ident.name().matches("\\w+")) {
            throw new IllegalArgumentException(
                "indextables: "
                    + ident.name()
                    + " cannot be the name of a table; use letters, digits and underscores");
        }
        TableIdentifier name =
            catalog.qualifyIdentifier(
                new TableIdentifier(
                    ident.name(),
                    ident.namespace().length == 0
                        ? Option.empty()
                        : Option.apply(ident.namespace()[0])));
        String location = (String) properties.get("location");
        boolean managed =
            location == null || "true".equals(properties.get("is_managed_location"));
        if (location == null && properties.containsKey("external")) {
            throw new IllegalArgumentException(
                "indextables: CREATE EXTERNAL TABLE " + ident + " needs LOCATION 'a path'");
        }
        URI place =
            location == null
                ? catalog.defaultTablePath(name)
                : CatalogUtils.stringToURI(location);
        CatalogTable table =
            CatalogTables.make(
                name,
                managed ? CatalogTableType.MANAGED() : CatalogTableType.EXTERNAL(),
                place,
                options(properties),
                PROVIDER);
        if (managed) {
            catalog.validateTableLocation(table);
        }
        return new Entry(table, true);
    }

    /** A copy that Spark makes without asking a catalog would be a name without a table. */
    static void refuseLike(CreateTableLikeCommand like) {
        Option provider = like.provider();
        if (!provider.isDefined()) {
            provider =
                catalog().getTempViewOrPermanentTableMetadata(like.sourceTable()).provider();
        }
        if (provider.isDefined() && PROVIDER.equalsIgnoreCase((String) provider.get())) {
            throw new UnsupportedOperationException(
                "indextables: this Spark cannot make "
                    + like.targetTable().unquotedString()
                    + " LIKE another table. Write CREATE TABLE "
                    + like.targetTable().unquotedString()
                    + " USING indextables AS SELECT * FROM "
                    + like.sourceTable().unquotedString()
                    + " WHERE false, or run what SHOW CREATE TABLE says under another name");
        }
    }

    static boolean isOurs(Map properties) {
        return PROVIDER.equalsIgnoreCase((String) properties.get("provider"));
    }

    boolean isOurs() {
        return table != null
            && table.provider().isDefined()
            && PROVIDER.equalsIgnoreCase((String) table.provider().get());
    }

    /** Options that are no settings of ours: how to reach the store. Settings go to the log. */
    private static Map options(Map properties) {
        Map out = new HashMap();
        Iterator entries = properties.entrySet().iterator();
        while (entries.hasNext()) {
            Map.Entry entry = (Map.Entry) entries.next();
            String key = (String) entry.getKey();
            if (key.startsWith("option.") && !key.startsWith("option.spark.indextables.")) {
                out.put(key.substring("option.".length()), entry.getValue());
            }
        }
        return out;
    }

    String name() {
        return table.identifier().unquotedString();
    }

    private String path() {
        return CatalogUtils.URIToString(table.location());
    }

    private boolean isManaged() {
        return table.tableType() == CatalogTableType.MANAGED()
            || CatalogTableType.MANAGED().equals(table.tableType());
    }

    /** What is asked of Python about this table. */
    ObjectNode request() {
        Map options = new HashMap();
        scala.collection.Iterator given = table.storage().properties().iterator();
        while (given.hasNext()) {
            scala.Tuple2 option = (scala.Tuple2) given.next();
            options.put(option._1(), option._2());
        }
        options.put("path", path());
        ObjectNode request = IndexTable.locate(options);
        ObjectNode entry = request.putObject("entry");
        entry.put("name", name());
        entry.put("managed", isManaged());
        entry.put("owner", table.owner());
        return request;
    }

    /** A replacement stays where the table is. */
    void refuseOtherPlace(Map properties) {
        String location = (String) properties.get("location");
        if (location == null) {
            return;
        }
        String asked = new Path(CatalogUtils.stringToURI(location)).toUri().getPath();
        if (!asked.equals(new Path(table.location()).toUri().getPath())) {
            throw new IllegalArgumentException(
                "indextables: "
                    + name()
                    + " is at "
                    + path()
                    + " and a replacement stays there. Nothing was changed; leave LOCATION out, or"
                    + " drop the table first");
        }
    }

    /** Give the table its name, if it has none yet. */
    void publish() {
        if (planned) {
            catalog().createTable(table, false, false);
        }
    }

    /**
     * Remove the files of a managed table that could not be named; its place was empty before.
     *
     * A table that is there although this statement did not come to commit it is another's, made
     * at the same moment and not named yet: it is left alone.
     */
    void undo(boolean committed) {
        if (!planned || !isManaged() || catalog().tableExists(table.identifier())) {
            return;
        }
        if (!committed && Bridge.ask("exists", request()).get("exists").asBoolean()) {
            return;
        }
        try {
            Path place = new Path(table.location());
            FileSystem files =
                place.getFileSystem(SparkSession.active().sessionState().newHadoopConf());
            files.delete(place, true);
            Bridge.ask("forget", request());
        } catch (java.io.IOException problem) {
            throw new IllegalStateException(
                "indextables: the files of a table that was not made are left at " + path(), problem);
        }
    }

    /** A table of another format, as Spark's own catalog would load it. */
    Table other(CatalogPlugin catalog, Identifier ident, ObjectNode extra)
        throws NoSuchTableException {
        TableCatalog tables = (TableCatalog) catalog;
        if (extra.has("version")) {
            return tables.loadTable(ident, extra.get("version").asText());
        }
        if (extra.has("timestampMicros")) {
            return tables.loadTable(ident, extra.get("timestampMicros").asLong());
        }
        SQLConf conf = SQLConf.get();
        if (table == null
            || !table.provider().isDefined()
            || !DataSourceV2Utils.getTableProvider((String) table.provider().get(), conf)
                .isDefined()) {
            return tables.loadTable(ident);
        }
        return (Table) SQLConf.withExistingConf(builtin(conf), new Load(tables, ident));
    }

    private static SQLConf builtin(SQLConf conf) {
        SQLConf plain = (SQLConf) conf.clone();
        plain.setConfString("spark.sql.catalog.spark_catalog", "builtin");
        return plain;
    }

    private static SessionCatalog catalog() {
        return SparkSession.active().sessionState().catalog();
    }

    /** One load, as a function of Scala. */
    static final class Load extends scala.runtime.AbstractFunction0 {
        private final TableCatalog catalog;
        private final Identifier ident;

        Load(TableCatalog catalog, Identifier ident) {
            this.catalog = catalog;
            this.ident = ident;
        }

        public Object apply() {
            try {
                return catalog.loadTable(ident);
            } catch (NoSuchTableException missing) {
                throw new IllegalStateException(missing);
            }
        }
    }
}
