package io.indextables.provider;

/** The format under the newer name of JVM IndexTables. */
public class IndexTablesProvider extends io.indextables.IndexTablesProvider {
}
