package io.indextables;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.collection.mutable.ListBuffer;

/** Plans a scan whose rows the driver has read as those rows; all else is left to Spark. */
public final class KnownRowsStrategy extends SparkStrategy {
    /** Ask this strategy first in a session, once. */
    public static void install(SparkSession session) {
        Seq others = session.experimental().extraStrategies();
        ListBuffer all = new ListBuffer();
        all.addOne(new KnownRowsStrategy());
        for (int i = 0; i < others.size(); i++) {
            if (!(others.apply(i) instanceof KnownRowsStrategy)) {
                all.addOne(others.apply(i));
            }
        }
        session.experimental().extraStrategies_$eq(all.toList());
    }

    public Seq apply(LogicalPlan plan) {
        ListBuffer found = new ListBuffer();
        if (plan instanceof DataSourceV2ScanRelation) {
            DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) plan;
            Scan scan = relation.scan();
            UnsafeRow[] rows =
                scan instanceof IndexTableScan ? ((IndexTableScan) scan).knownRows() : null;
            if (rows != null) {
                found.addOne(exec(relation, rows));
            }
        }
        return found.toList();
    }

    private static KnownRowsExec exec(DataSourceV2ScanRelation relation, UnsafeRow[] rows) {
        ListBuffer known = new ListBuffer();
        for (int i = 0; i < rows.length; i++) {
            known.addOne(rows[i]);
        }
        Seq output = relation.output();
        String description = relation.scan().description();
        boolean one = rows.length > 0;
        return new KnownRowsExec(output, known.toList(), Option.empty(), one, description);
    }
}
