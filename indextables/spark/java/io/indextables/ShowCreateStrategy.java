package io.indextables;

import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.ShowCreateTableExec;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;
import scala.collection.mutable.ListBuffer;

/**
 * SHOW CREATE TABLE of ours, which can be run again.
 *
 * Spark hides the value of a property whose name or value looks like a secret, and "tokenizer"
 * has "token" in it, as "url" is one of its patterns. How columns are indexed is no secret, so
 * those values are put back; all others stay as Spark shows them.
 */
final class ShowCreateStrategy extends SparkStrategy {
    private static final String INDEXING = "spark.indextables.indexing.";
    private static final String HIDDEN = "*********(redacted)";

    /** Let a session ask this strategy; once is enough, more is harmless. */
    static void install(SparkSession session) {
        Seq known = session.experimental().extraStrategies();
        ListBuffer all = new ListBuffer();
        for (int i = 0; i < known.size(); i++) {
            if (known.apply(i) instanceof ShowCreateStrategy) {
                return;
            }
            all.addOne(known.apply(i));
        }
        all.addOne(new ShowCreateStrategy());
        session.experimental().extraStrategies_$eq(all.toList());
    }

    public Seq apply(LogicalPlan plan) {
        ListBuffer found = new ListBuffer();
        if (plan instanceof ShowCreateTable && !((ShowCreateTable) plan).asSerde()) {
            LogicalPlan child = ((ShowCreateTable) plan).child();
            if (child instanceof ResolvedTable
                && ((ResolvedTable) child).table() instanceof IndexTable) {
                found.addOne(shown((ShowCreateTable) plan, (ResolvedTable) child));
            }
        }
        return found.toList();
    }

    private static KnownRowsExec shown(ShowCreateTable plan, ResolvedTable table) {
        InternalRow[] rows = new ShowCreateTableExec(plan.output(), table).executeCollect();
        String text = told(rows[0].getUTF8String(0).toString(), table.table().properties());
        InternalRow row = new GenericInternalRow(new Object[] {UTF8String.fromString(text)});
        UnsafeProjection flat = UnsafeProjection.create(new DataType[] {DataTypes.StringType});
        ListBuffer all = new ListBuffer();
        all.addOne(flat.apply(row).copy());
        return KnownRowsExec.of(plan.output(), all.toList(), true, "SHOW CREATE TABLE");
    }

    private static String told(String text, Map properties) {
        String out = text;
        Iterator entries = properties.entrySet().iterator();
        while (entries.hasNext()) {
            Map.Entry entry = (Map.Entry) entries.next();
            if (((String) entry.getKey()).startsWith(INDEXING)) {
                String name = "'" + quoted((String) entry.getKey()) + "' = '";
                out = out.replace(
                    name + HIDDEN + "'", name + quoted((String) entry.getValue()) + "'");
            }
        }
        return out;
    }

    private static String quoted(String text) {
        return text.replace("\\", "\\\\").replace("'", "\\'");
    }
}
