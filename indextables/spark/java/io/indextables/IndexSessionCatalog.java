package io.indextables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The session's own catalog, in which tables of ours have names.
 *
 * An entry says where a table is and whether its files go with it (Entry); columns, comment,
 * properties and partitioning are in the table's log and nowhere else, so the two cannot disagree.
 * A table is written first and named then; one that is replaced keeps its entry, and its
 * replacement is one commit of its log. Tables of other formats pass through untouched.
 */
public class IndexSessionCatalog extends SessionEdge {
    public void initialize(String name, CaseInsensitiveStringMap options) {
        SearchRules.install(SparkSession.active());
        ShowCreateStrategy.install(SparkSession.active());
    }

    // -- reading ---------------------------------------------------------------------------------

    public Table loadTable(Identifier ident) throws NoSuchTableException {
        return load(ident, Bridge.object());
    }

    public Table loadTable(Identifier ident, Set privileges) throws NoSuchTableException {
        return load(ident, Moment.forWrite());
    }

    public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
        return load(ident, Moment.version(version));
    }

    public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
        return load(ident, Moment.timestamp(timestamp));
    }

    private Table load(Identifier ident, ObjectNode extra) throws NoSuchTableException {
        Entry entry;
        try {
            entry = Entry.find(delegate, ident);
        } catch (NoSuchTableException missing) {
            Entry owner = FactsTable.ownerOf(delegate, ident);
            if (owner == null) {
                throw missing;
            }
            return new FactsTable(owner.request(), ident);
        }
        if (!entry.isOurs()) {
            return entry.other(delegate, ident, extra);
        }
        ObjectNode request = entry.request();
        request.setAll(extra);
        return new IndexTable(request);
    }

    // -- making and replacing --------------------------------------------------------------------

    public Table createTable(Identifier ident, Column[] columns, Transform[] by, Map properties)
        throws TableAlreadyExistsException, NoSuchNamespaceException {
        if (!Entry.isOurs(properties)) {
            return ((TableCatalog) delegate).createTable(ident, columns, by, properties);
        }
        stageCreate(ident, columns, by, properties).commitStagedChanges();
        return null;
    }

    public StagedTable stageCreate(
        Identifier ident, Column[] columns, Transform[] by, Map properties)
        throws TableAlreadyExistsException, NoSuchNamespaceException {
        if (!Entry.isOurs(properties)) {
            ((TableCatalog) delegate).createTable(ident, columns, by, properties);
            return null;
        }
        if (tableExists(ident)) {
            throw new TableAlreadyExistsException(ident);
        }
        Entry entry = Entry.planned(ident, properties);
        return new StagedIndexTable(
            StagedIndexTable.request(entry.request(), columns, by, properties, false), entry);
    }

    public StagedTable stageReplace(
        Identifier ident, Column[] columns, Transform[] by, Map properties)
        throws NoSuchTableException, NoSuchNamespaceException {
        Entry old = Entry.find(delegate, ident);
        if (old.isOurs() && Entry.isOurs(properties)) {
            old.refuseOtherPlace(properties);
            return new StagedIndexTable(
                StagedIndexTable.request(old.request(), columns, by, properties, true), old);
        }
        if (old.isOurs() || Entry.isOurs(properties)) {
            throw new IllegalArgumentException(
                "indextables: "
                    + old.name()
                    + " changes its format and cannot be replaced in one step. Nothing was changed;"
                    + " DROP TABLE first, or write under another name and rename");
        }
        return replaceOther(ident, columns, by, properties);
    }

    public StagedTable stageCreateOrReplace(
        Identifier ident, Column[] columns, Transform[] by, Map properties)
        throws NoSuchNamespaceException {
        try {
            return tableExists(ident)
                ? stageReplace(ident, columns, by, properties)
                : stageCreate(ident, columns, by, properties);
        } catch (NoSuchTableException gone) {
            throw new IllegalStateException("indextables: " + ident + " was dropped meanwhile", gone);
        } catch (TableAlreadyExistsException made) {
            throw new IllegalStateException("indextables: " + ident + " was made meanwhile", made);
        }
    }

    /** Spark's own way, for formats that have no better one. */
    private StagedTable replaceOther(
        Identifier ident, Column[] columns, Transform[] by, Map properties)
        throws NoSuchNamespaceException {
        ((TableCatalog) delegate).dropTable(ident);
        try {
            ((TableCatalog) delegate).createTable(ident, columns, by, properties);
        } catch (TableAlreadyExistsException made) {
            throw new IllegalStateException("indextables: " + ident + " was made meanwhile", made);
        }
        return null;
    }

    // -- changing --------------------------------------------------------------------------------

    public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
        Entry entry = Entry.find(delegate, ident);
        if (!entry.isOurs()) {
            return ((TableCatalog) delegate).alterTable(ident, changes);
        }
        Changes.apply(entry.request(), changes);
        return loadTable(ident);
    }

    public boolean dropTable(Identifier ident) {
        ObjectNode known = known(ident);
        boolean gone = ((TableCatalog) delegate).dropTable(ident);
        forget(known);
        return gone;
    }

    public boolean purgeTable(Identifier ident) {
        ObjectNode known = known(ident);
        boolean gone = ((TableCatalog) delegate).purgeTable(ident);
        forget(known);
        return gone;
    }

    public void renameTable(Identifier from, Identifier to)
        throws NoSuchTableException, TableAlreadyExistsException {
        ObjectNode known = known(from);
        ((TableCatalog) delegate).renameTable(from, to);
        forget(known);
    }

    /** The table of ours that a name stands for, as Python knows it; null for any other. */
    private ObjectNode known(Identifier ident) {
        try {
            Entry entry = Entry.find(delegate, ident);
            return entry.isOurs() ? entry.request() : null;
        } catch (NoSuchTableException missing) {
            return null;
        }
    }

    private static void forget(ObjectNode known) {
        if (known != null) {
            Bridge.ask("forget", known);
        }
    }
}
