package io.indextables;

import java.io.DataInputStream;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.execution.streaming.runtime.MemoryStreamInputPartition;
import org.apache.spark.sql.execution.streaming.runtime.MemoryStreamReaderFactory$;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Where the rows of a scan meet Spark's own classes, as they are since Spark 4.1.
 *
 * Each of these classes has another name or shape in another minor of Spark.
 */
final class ScanEdge {
    private ScanEdge() {}

    /** Rows that the driver has read, as a partition of Spark's memory source. */
    static InputPartition known(UnsafeRow[] rows) {
        return new MemoryStreamInputPartition(rows);
    }

    static PartitionReaderFactory knownFactory() {
        return MemoryStreamReaderFactory$.MODULE$;
    }

    /** Spark's reader of Python tasks. */
    static PartitionReaderFactory taskFactory(
        UserDefinedPythonDataSource source, byte[] function, StructType output) {
        Option none = Option.empty();
        return new PythonPartitionReaderFactory(source, function, output, none, none);
    }

    /** The read function and its partitions as Python wrote them. */
    static PythonDataSourceReadInfo tasks(DataInputStream in) throws Exception {
        return PythonDataSourceReadInfo.receive(in);
    }
}
