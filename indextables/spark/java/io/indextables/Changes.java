package io.indextables;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.NamedReference;

/** ALTER TABLE: Spark's changes as a list that Python applies to the log, all of them or none. */
final class Changes {
    private Changes() {}

    static void apply(ObjectNode request, TableChange[] changes) {
        ArrayNode list = request.putArray("changes");
        for (int i = 0; i < changes.length; i++) {
            ObjectNode change = list.addObject();
            if (changes[i] instanceof TableChange.ColumnChange) {
                column(change, (TableChange.ColumnChange) changes[i]);
            } else {
                table(change, changes[i]);
            }
        }
        try {
            Bridge.ask("alter", request);
        } catch (IllegalArgumentException refused) {
            // Spark wraps that kind, and shows its own words and stack first
            throw new UnsupportedOperationException(refused.getMessage());
        }
    }

    private static void table(ObjectNode out, TableChange change) {
        if (change instanceof TableChange.SetProperty) {
            out.put("do", "set");
            out.put("name", ((TableChange.SetProperty) change).property());
            out.put("value", ((TableChange.SetProperty) change).value());
        } else if (change instanceof TableChange.RemoveProperty) {
            out.put("do", "unset");
            out.put("name", ((TableChange.RemoveProperty) change).property());
        } else if (change instanceof TableChange.ClusterBy) {
            out.put("do", "cluster");
            ArrayNode names = out.putArray("names");
            NamedReference[] keys = ((TableChange.ClusterBy) change).clusteringColumns();
            for (int i = 0; i < keys.length; i++) {
                names.add(Partitioning.name(keys[i]));
            }
        } else {
            throw unknown(change);
        }
    }

    private static void column(ObjectNode out, TableChange.ColumnChange change) {
        ArrayNode path = out.putArray("column");
        for (int i = 0; i < change.fieldNames().length; i++) {
            path.add(change.fieldNames()[i]);
        }
        if (change instanceof TableChange.AddColumn) {
            added(out, (TableChange.AddColumn) change);
        } else if (change instanceof TableChange.DeleteColumn) {
            out.put("do", "drop");
            out.put("ifExists", ((TableChange.DeleteColumn) change).ifExists().booleanValue());
        } else if (change instanceof TableChange.RenameColumn) {
            out.put("do", "rename");
            out.put("to", ((TableChange.RenameColumn) change).newName());
        } else if (change instanceof TableChange.UpdateColumnType) {
            out.put("do", "type");
            out.set("type", CatalystJson.type(((TableChange.UpdateColumnType) change).newDataType()));
        } else if (change instanceof TableChange.UpdateColumnNullability) {
            out.put("do", "nullable");
            out.put("nullable", ((TableChange.UpdateColumnNullability) change).nullable());
        } else if (change instanceof TableChange.UpdateColumnComment) {
            out.put("do", "comment");
            out.put("comment", ((TableChange.UpdateColumnComment) change).newComment());
        } else if (change instanceof TableChange.UpdateColumnPosition) {
            out.put("do", "move");
            position(out, ((TableChange.UpdateColumnPosition) change).position());
        } else if (change instanceof TableChange.UpdateColumnDefaultValue) {
            out.put("do", "default");
            out.put("default", ((TableChange.UpdateColumnDefaultValue) change).newDefaultValue());
        } else {
            throw unknown(change);
        }
    }

    private static void added(ObjectNode out, TableChange.AddColumn change) {
        out.put("do", "add");
        out.set("type", CatalystJson.type(change.dataType()));
        out.put("nullable", change.isNullable());
        out.put("comment", change.comment());
        ColumnDefaultValue value = change.defaultValue();
        out.put("default", value == null ? null : value.toString());
        position(out, change.position());
    }

    private static void position(ObjectNode out, TableChange.ColumnPosition position) {
        if (position instanceof TableChange.After) {
            out.put("after", ((TableChange.After) position).column());
        } else if (position instanceof TableChange.First) {
            out.put("first", true);
        }
    }

    private static RuntimeException unknown(TableChange change) {
        return new UnsupportedOperationException(
            "indextables: ALTER TABLE cannot do "
                + change.getClass().getSimpleName()
                + ". Nothing was changed");
    }
}
