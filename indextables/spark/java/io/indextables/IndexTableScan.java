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

/** One scan, planned in Python: one question brings its rows or tasks and all that is said of it. */
public class IndexTableScan implements Scan, Batch, SupportsReportStatistics {
    private final ScanRequest request;
    private final ObjectNode last;
    private final StructType output;
    private ScanPlan plan;
    private JsonNode story;
    private boolean streaming;

    /** "last" is what was added to the request since Python was asked; "plan" may be null. */
    IndexTableScan(ScanRequest request, ObjectNode last, StructType output, ScanPlan plan) {
        this.request = request;
        this.last = last;
        this.output = output;
        this.plan = plan;
    }

    public StructType readSchema() {
        return output;
    }

    public String description() {
        return story().get("text").asText();
    }

    public Batch toBatch() {
        return this;
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        streaming = true;
        return Python.streamingScan(request.whole(), output).toMicroBatchStream(checkpoint);
    }

    public Statistics estimateStatistics() {
        JsonNode found = story();
        return new Estimate(found.get("bytes").asLong(), found.get("rows").asLong());
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
        if (plan == null) {
            plan = Bridge.isStock()
                ? ScanPlan.ofTasks(StockTransport.read(request.whole(), output))
                : ScanPlan.receive(request.fetch(last), output);
        }
        return plan;
    }

    /** What is said of the scan; a stream grows, and its story with it. */
    private synchronized JsonNode story() {
        if (streaming) {
            return request.ask("summary", last);
        }
        if (story == null && (plan != null || !Bridge.isStock())) {
            story = plan().story();
        }
        if (story == null) {
            story = request.ask("summary", last);
        }
        return story;
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
