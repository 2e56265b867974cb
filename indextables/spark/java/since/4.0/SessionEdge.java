package io.indextables;

import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;

/** Before Spark 4.2 no catalog is asked for CREATE TABLE LIKE; SearchRules refuses it for ours. */
abstract class SessionEdge extends DelegatingCatalogExtension implements StagingTableCatalog {}
