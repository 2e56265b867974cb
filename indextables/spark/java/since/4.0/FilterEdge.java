package io.indextables;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.PartitionSpec$;
import org.apache.spark.sql.execution.datasources.v2.FileScanBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.mutable.ListBuffer;

/** Spark 4.0 hands whole filters to scans of files only, so ours is one, of no files. */
abstract class FilterEdge extends FileScanBuilder
    implements SupportsPushDownLimit, SupportsPushDownAggregates {
    private final StructType whole;

    FilterEdge(StructType schema) {
        super(session(), noFiles(), schema);
        whole = schema;
    }

    /** Rows without columns get lost between Python and Spark 4.0, so a small one is read along. */
    StructType readable(StructType required) {
        if (required.length() > 0 || whole.length() == 0) {
            return required;
        }
        StructField least = whole.fields()[0];
        for (int i = 1; i < whole.length(); i++) {
            StructField other = whole.fields()[i];
            if (other.dataType().defaultSize() < least.dataType().defaultSize()) {
                least = other;
            }
        }
        return new StructType(new StructField[] {least});
    }

    private static SparkSession session() {
        return org.apache.spark.sql.classic.SparkSession.active();
    }

    private static InMemoryFileIndex noFiles() {
        PartitionSpec nothing = PartitionSpec$.MODULE$.emptySpec();
        return new InMemoryFileIndex(
            session(),
            new ListBuffer().toList(),
            Map$.MODULE$.empty(),
            Option.empty(),
            NoopCache$.MODULE$,
            Option.apply(nothing),
            Option.empty());
    }
}
