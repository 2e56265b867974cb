package io.indextables;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** indextables.textsearch(column, 'query'): a search by a name that a stored view can hold. */
final class SearchFunction implements UnboundFunction {
    private final String name;

    SearchFunction(String name) {
        this.name = name.toLowerCase();
    }

    public String name() {
        return name;
    }

    public String description() {
        return name + "(column, 'query')";
    }

    public BoundFunction bind(StructType input) {
        DataType[] types = new DataType[input.fields().length];
        for (int i = 0; i < types.length; i++) {
            types[i] = input.fields()[i].dataType();
        }
        return new Bound(name, types);
    }

    /** Replaced by the session's function before anything runs; see SearchRules. */
    static final class Bound implements ScalarFunction {
        private final String name;
        private final DataType[] types;

        Bound(String name, DataType[] types) {
            this.name = name;
            this.types = types;
        }

        public String name() {
            return name;
        }

        public DataType[] inputTypes() {
            return types;
        }

        public DataType resultType() {
            return DataTypes.BooleanType;
        }

        public String canonicalName() {
            return "io.indextables." + name;
        }

        public Object produceResult(InternalRow input) {
            throw new IllegalStateException(
                "indextables: register this session with indextables.register(spark) to search");
        }
    }
}
