package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.OptionalLong;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;

/** One scan, planned in Python. */
public class IndexTableScan implements Scan, Batch, SupportsReportStatistics {
    private final ObjectNode request;
    private final StructType output;
    private ScanPlan plan;

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
        return plan().partitions();
    }

    public PartitionReaderFactory createReaderFactory() {
        return plan().factory(output);
    }

    /** The rows of the whole scan, if the driver has read them; else null. */
    UnsafeRow[] knownRows() {
        return plan().knownRows();
    }

    private synchronized ScanPlan plan() {
        if (plan == null && Bridge.isStock()) {
            plan = ScanPlan.ofTasks(StockTransport.read(request, output));
        }
        if (plan == null) {
            try {
                plan = ScanPlan.receive(Bridge.fetch("plan", request), output);
            } catch (RuntimeException problem) {
                throw problem;
            } catch (Exception problem) {
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
