package io.indextables;

import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.StructType;

/** Since Spark 4.1 any scan may ask for whole filters. */
abstract class FilterEdge
    implements SupportsPushDownCatalystFilters,
        SupportsPushDownRequiredColumns,
        SupportsPushDownLimit,
        SupportsPushDownAggregates {
    FilterEdge(StructType schema) {}

    /** Rows without columns are counted as they are. */
    StructType readable(StructType required) {
        return required;
    }
}
