package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** One scan, planned in Python; executors run Spark's own reader of Python data sources. */
public class IndexTableScan implements Scan, Batch, SupportsReportStatistics {
    private final ObjectNode request;
    private final StructType output;
    private PythonDataSourceReadInfo plan;
    private boolean planned;

    IndexTableScan(ObjectNode request, StructType output) {
        this.request = request;
        this.output = output;
    }

    public StructType readSchema() {
        return output;
    }

    public String description() {
        return Bridge.ask("summary", request).get("text").asText();
    }

    public Batch toBatch() {
        return this;
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        return Python.streamingScan(request, output).toMicroBatchStream(checkpoint);
    }

    public Statistics estimateStatistics() {
        JsonNode answer = Bridge.ask("statistics", request);
        return new Estimate(answer.get("bytes").asLong(), answer.get("rows").asLong());
    }

    public boolean reflectsFullyPushedDownFilters() {
        return true;
    }

    public InputPartition[] planInputPartitions() {
        if (plan() == null) {
            return new InputPartition[0];
        }
        scala.collection.immutable.Seq parts = plan().partitions();
        InputPartition[] out = new InputPartition[parts.size()];
        for (int i = 0; i < out.length; i++) {
            out[i] = new PythonInputPartition(i, (byte[]) parts.apply(i));
        }
        return out;
    }

    public PartitionReaderFactory createReaderFactory() {
        Option none = Option.empty();
        PythonDataSourceV2 source = Python.source();
        byte[] function = plan() == null ? new byte[0] : plan().func();
        return new PythonPartitionReaderFactory(source.source(), function, output, none, none);
    }

    private synchronized PythonDataSourceReadInfo plan() {
        if (!planned && Bridge.isStock()) {
            plan = StockTransport.read(request, output);
            planned = true;
        }
        if (!planned) {
            byte[] bytes = Bridge.fetch("plan", request);
            planned = true;
            try {
                DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
                plan = Python.receive(in);
            } catch (java.io.IOException problem) {
                throw new IllegalStateException("indextables: unreadable plan", problem);
            }
        }
        return plan;
    }

    public boolean equals(Object other) {
        return other instanceof IndexTableScan
            && ((IndexTableScan) other).request.equals(request)
            && ((IndexTableScan) other).output.equals(output);
    }

    public int hashCode() {
        return request.hashCode();
    }

    /** Rows and bytes as the plan knows them; a negative number is unknown. */
    static final class Estimate implements Statistics {
        private final long bytes;
        private final long rows;

        Estimate(long bytes, long rows) {
            this.bytes = bytes;
            this.rows = rows;
        }

        public OptionalLong sizeInBytes() {
            return bytes < 0 ? OptionalLong.empty() : OptionalLong.of(bytes);
        }

        public OptionalLong numRows() {
            return rows < 0 ? OptionalLong.empty() : OptionalLong.of(rows);
        }
    }
}
