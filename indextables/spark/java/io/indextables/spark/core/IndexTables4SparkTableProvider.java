package io.indextables.spark.core;

/** The format under the name that JVM IndexTables gives it in every example. */
public class IndexTables4SparkTableProvider extends io.indextables.IndexTablesProvider {
}
