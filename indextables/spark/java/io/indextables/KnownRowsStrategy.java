package io.indextables;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
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
        UnsafeRow[] rows = rowsUnder(plan);
        if (rows != null) {
            found.addOne(planned(plan, rows));
        }
        return found.toList();
    }

    /** The known rows below projections and filters, which Spark would plan together with a scan. */
    private static UnsafeRow[] rowsUnder(LogicalPlan plan) {
        LogicalPlan at = plan;
        while (at instanceof Project || at instanceof Filter) {
            at = at instanceof Project ? ((Project) at).child() : ((Filter) at).child();
        }
        if (!(at instanceof DataSourceV2ScanRelation)) {
            return null;
        }
        Scan scan = ((DataSourceV2ScanRelation) at).scan();
        return scan instanceof IndexTableScan ? ((IndexTableScan) scan).knownRows() : null;
    }

    private static SparkPlan planned(LogicalPlan plan, UnsafeRow[] rows) {
        if (plan instanceof Project) {
            Project project = (Project) plan;
            return new ProjectExec(project.projectList(), planned(project.child(), rows));
        }
        if (plan instanceof Filter) {
            Filter filter = (Filter) plan;
            return new FilterExec(filter.condition(), planned(filter.child(), rows));
        }
        return exec((DataSourceV2ScanRelation) plan, rows);
    }

    private static KnownRowsExec exec(DataSourceV2ScanRelation relation, UnsafeRow[] rows) {
        ListBuffer known = new ListBuffer();
        for (int i = 0; i < rows.length; i++) {
            known.addOne(rows[i]);
        }
        Seq output = relation.output();
        String description = relation.scan().description();
        return KnownRowsExec.of(output, known.toList(), rows.length > 0, description);
    }
}
