package io.indextables;

import org.apache.spark.sql.execution.LocalTableScanExec;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.collection.mutable.ListBuffer;

/**
 * The rows of a scan that the driver has read: collecting them starts no job.
 *
 * It is Spark's own scan of local rows and says in plans what ours says.
 */
public class KnownRowsExec extends LocalTableScanExec {
    private final String description;

    public KnownRowsExec(
        Seq output, Seq rows, Option stream, boolean useSingleTask, String description) {
        super(output, rows, stream, useSingleTask);
        this.description = description;
    }

    /** A scan of these rows; "one" asks for a single task where Spark can be told. */
    static KnownRowsExec of(Seq output, Seq rows, boolean one, String description) {
        return new KnownRowsExec(output, rows, Option.empty(), one, description);
    }

    public Seq otherCopyArgs() {
        return new ListBuffer().addOne(description).toList();
    }

    /** Spark makes names of variables in generated code from it, so it must be able to be one. */
    public String nodeName() {
        return "KnownRows";
    }

    /** Aggregates and sorts send the plan below them to executors, which know Spark's classes only. */
    public Object writeReplace() {
        return new LocalTableScanExec(output(), rows(), stream(), useSingleTask());
    }

    public Iterator stringArgs() {
        return new ListBuffer().addOne(output()).addOne(description).toList().iterator();
    }
}
