package io.indextables;

import java.io.DataInputStream;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.execution.streaming.MemoryStreamInputPartition;
import org.apache.spark.sql.execution.streaming.MemoryStreamReaderFactory$;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.mutable.ListBuffer;

/**
 * Where the rows of a scan meet Spark's own classes, as they are in Spark 4.0.
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
        return new PythonPartitionReaderFactory(source, function, output, none);
    }

    /** The read function and its partitions as Python wrote them. */
    static PythonDataSourceReadInfo tasks(DataInputStream in) throws Exception {
        byte[] function = piece(in);
        ListBuffer parts = new ListBuffer();
        int count = in.readInt();
        for (int i = 0; i < count; i++) {
            parts.addOne(piece(in));
        }
        return new PythonDataSourceReadInfo(function, parts.toList());
    }

    private static byte[] piece(DataInputStream in) throws Exception {
        byte[] out = new byte[in.readInt()];
        in.readFully(out);
        return out;
    }
}
