package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils$;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

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
    static final byte GONE = 4;

    private final PythonDataSourceReadInfo tasks;
    private final UnsafeRow[] rows;
    private final JsonNode story;

    private ScanPlan(PythonDataSourceReadInfo tasks, UnsafeRow[] rows, JsonNode story) {
        this.tasks = tasks;
        this.rows = rows;
        this.story = story;
    }

    static ScanPlan ofTasks(PythonDataSourceReadInfo tasks) {
        return new ScanPlan(tasks, null, null);
    }

    /** The plan of an aggregate whose rows came with the answer to it. */
    static ScanPlan ofAnswer(JsonNode answer, StructType output) {
        try {
            byte[] stream = Base64.getDecoder().decode(answer.get("rows").asText());
            return new ScanPlan(null, rows(stream, output), answer.get("story"));
        } catch (Exception problem) {
            throw unreadable(problem);
        }
    }

    /** The plan that Python sent: one byte says what follows its story. */
    static ScanPlan receive(byte[] bytes, StructType output) {
        byte kind = bytes[0];
        if (kind != TASKS && kind != NOTHING && kind != ROWS) {
            throw new IllegalArgumentException(
                new String(bytes, 1, bytes.length - 1, StandardCharsets.UTF_8));
        }
        try {
            DataInputStream in =
                new DataInputStream(new ByteArrayInputStream(bytes, 1, bytes.length - 1));
            byte[] text = new byte[in.readInt()];
            in.readFully(text);
            JsonNode story = Bridge.JSON.readTree(text);
            if (kind == TASKS) {
                return new ScanPlan(ScanEdge.tasks(in), null, story);
            }
            byte[] rest = new byte[in.available()];
            in.readFully(rest);
            UnsafeRow[] found = kind == NOTHING ? new UnsafeRow[0] : rows(rest, output);
            return new ScanPlan(null, found, story);
        } catch (Exception problem) {
            throw unreadable(problem);
        }
    }

    private static RuntimeException unreadable(Exception problem) {
        return new IllegalStateException("indextables: unreadable plan", problem);
    }

    /** The rows of an Arrow stream; the memory that held them is given back. */
    private static UnsafeRow[] rows(byte[] stream, StructType output) throws Exception {
        UnsafeProjection projection = UnsafeProjection$.MODULE$.create(output);
        List rows = new ArrayList();
        BufferAllocator memory =
            ArrowUtils$.MODULE$.rootAllocator().newChildAllocator("indextables", 0, Long.MAX_VALUE);
        try {
            ArrowStreamReader reader =
                new ArrowStreamReader(new ByteArrayInputStream(stream), memory);
            try {
                while (reader.loadNextBatch()) {
                    Iterator found = batch(reader.getVectorSchemaRoot()).rowIterator();
                    while (found.hasNext()) {
                        rows.add(projection.apply((InternalRow) found.next()).copy());
                    }
                }
            } finally {
                reader.close();
            }
        } finally {
            memory.close();
        }
        return (UnsafeRow[]) rows.toArray(new UnsafeRow[0]);
    }

    private static ColumnarBatch batch(VectorSchemaRoot root) {
        List vectors = root.getFieldVectors();
        ColumnVector[] columns = new ColumnVector[vectors.size()];
        for (int i = 0; i < columns.length; i++) {
            columns[i] = new ArrowColumnVector((ValueVector) vectors.get(i));
        }
        return new ColumnarBatch(columns, root.getRowCount());
    }

    /** What is said of the scan; null where that has to be asked for. */
    JsonNode story() {
        return story;
    }

    /** The rows of the whole scan; null where tasks read them. */
    UnsafeRow[] knownRows() {
        return rows;
    }

    InputPartition[] partitions() {
        if (rows != null) {
            return rows.length == 0
                ? new InputPartition[0]
                : new InputPartition[] {ScanEdge.known(rows)};
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
            return ScanEdge.knownFactory();
        }
        return ScanEdge.taskFactory(Python.source().source(), tasks.func(), output);
    }
}
