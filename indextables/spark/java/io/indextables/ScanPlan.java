package io.indextables;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.streaming.runtime.MemoryStreamInputPartition;
import org.apache.spark.sql.execution.streaming.runtime.MemoryStreamReaderFactory$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CloseableIterator;
import scala.Option;

/**
 * How the rows of one scan reach Spark: read by Python tasks, or already read by the driver.
 *
 * Executors know Spark's own classes only, so rows that are known travel as a partition of Spark's
 * memory source.
 */
final class ScanPlan {
    private static final byte TASKS = 0;
    private static final byte NOTHING = 2;
    private static final byte ROWS = 3;

    private final PythonDataSourceReadInfo tasks;
    private final UnsafeRow[] rows;

    private ScanPlan(PythonDataSourceReadInfo tasks, UnsafeRow[] rows) {
        this.tasks = tasks;
        this.rows = rows;
    }

    static ScanPlan ofTasks(PythonDataSourceReadInfo tasks) {
        return new ScanPlan(tasks, null);
    }

    /** The plan that Python sent: one byte says what follows. */
    static ScanPlan receive(byte[] bytes, StructType output) throws Exception {
        byte[] rest = Arrays.copyOfRange(bytes, 1, bytes.length);
        switch (bytes[0]) {
            case TASKS:
                DataInputStream in = new DataInputStream(new ByteArrayInputStream(rest));
                return ofTasks(PythonDataSourceReadInfo.receive(in));
            case NOTHING:
                return new ScanPlan(null, new UnsafeRow[0]);
            case ROWS:
                return new ScanPlan(null, rows(rest, output));
            default:
                throw new IllegalArgumentException(
                    new String(rest, java.nio.charset.StandardCharsets.UTF_8));
        }
    }

    private static UnsafeRow[] rows(byte[] stream, StructType output)
        throws Exception {
        CloseableIterator found = (CloseableIterator) ArrowConverters$.MODULE$.fromIPCStream(stream)._1();
        UnsafeProjection projection = UnsafeProjection$.MODULE$.create(output);
        List rows = new ArrayList();
        try {
            while (found.hasNext()) {
                rows.add(projection.apply((InternalRow) found.next()).copy());
            }
        } finally {
            found.close();
        }
        return (UnsafeRow[]) rows.toArray(new UnsafeRow[0]);
    }

    /** The rows of the whole scan; null where tasks read them. */
    UnsafeRow[] knownRows() {
        return rows;
    }

    InputPartition[] partitions() {
        if (rows != null) {
            return rows.length == 0
                ? new InputPartition[0]
                : new InputPartition[] {new MemoryStreamInputPartition(rows)};
        }
        scala.collection.immutable.Seq parts = tasks.partitions();
        InputPartition[] out = new InputPartition[parts.size()];
        for (int i = 0; i < out.length; i++) {
            out[i] = new PythonInputPartition(i, (byte[]) parts.apply(i));
        }
        return out;
    }

    PartitionReaderFactory factory(StructType output) {
        if (rows != null) {
            return MemoryStreamReaderFactory$.MODULE$;
        }
        Option none = Option.empty();
        PythonDataSourceV2 source = Python.source();
        return new PythonPartitionReaderFactory(source.source(), tasks.func(), output, none, none);
    }
}
