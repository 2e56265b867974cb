package io.indextables;

import com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;

/** PARTITIONED BY and CLUSTER BY as lists of column names. */
final class Partitioning {
    private Partitioning() {}

    static ArrayNode columns(Transform[] transforms) {
        ArrayNode names = Bridge.JSON.createArrayNode();
        for (int i = 0; i < transforms.length; i++) {
            if ("cluster_by".equals(transforms[i].name())) {
                continue;
            }
            if (!"identity".equals(transforms[i].name())) {
                throw new UnsupportedOperationException(
                    "indextables: partition by plain columns, not by "
                        + transforms[i].describe()
                        + ". Add a column with that value, and partition by it");
            }
            names.add(name(transforms[i].references()[0]));
        }
        return names;
    }

    static ArrayNode clustering(Transform[] transforms) {
        ArrayNode names = Bridge.JSON.createArrayNode();
        for (int i = 0; i < transforms.length; i++) {
            if ("cluster_by".equals(transforms[i].name())) {
                NamedReference[] keys = transforms[i].references();
                for (int k = 0; k < keys.length; k++) {
                    names.add(name(keys[k]));
                }
            }
        }
        return names;
    }

    static String quoted(String name) {
        return "`" + name.replace("`", "``") + "`";
    }

    static String name(NamedReference reference) {
        return String.join(".", reference.fieldNames());
    }
}
