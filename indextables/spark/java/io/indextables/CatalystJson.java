package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.Seq;

/**
 * Catalyst expressions as nested JSON, whole trees, nothing left out.
 *
 * {"op":"attr","name":["a","b"],"type":T}, {"op":"lit","type":T,"value":V}, and for everything else
 * {"op":ClassName,"children":[...]} with "sql" for a reader. Types are Spark's own JSON. Values:
 * strings and booleans as such, integers as numbers, floats as text, decimals as text, binary as
 * base64, dates as days, timestamps as microseconds; a NULL is null.
 */
final class CatalystJson {
    private CatalystJson() {}

    static ArrayNode list(Seq expressions) {
        ArrayNode out = Bridge.JSON.createArrayNode();
        for (int i = 0; i < expressions.size(); i++) {
            out.add(node((Expression) expressions.apply(i)));
        }
        return out;
    }

    static JsonNode node(Expression e) {
        if (e instanceof Literal) {
            Literal literal = (Literal) e;
            return literal(literal.value(), literal.dataType());
        }
        List path = path(e);
        if (path != null) {
            ObjectNode out = Bridge.object();
            out.put("op", "attr");
            ArrayNode names = out.putArray("name");
            for (int i = 0; i < path.size(); i++) {
                names.add((String) path.get(i));
            }
            out.set("type", type(e.dataType()));
            return out;
        }
        return call(e);
    }

    private static JsonNode call(Expression e) {
        ObjectNode out = Bridge.object();
        out.put("op", e.getClass().getSimpleName());
        if (e instanceof Like) {
            out.put("escape", String.valueOf(((Like) e).escapeChar()));
        } else if (e instanceof Cast) {
            out.set("type", type(e.dataType()));
            out.put("mode", ((Cast) e).evalMode().toString().toLowerCase());
        } else if (e instanceof PythonUDF) {
            out.put("name", ((PythonUDF) e).name());
        } else if (e instanceof InSet) {
            values(out, (InSet) e);
        }
        out.put("sql", text(e));
        out.set("children", list(e.children()));
        return out;
    }

    private static void values(ObjectNode out, InSet in) {
        out.set("type", type(in.child().dataType()));
        ArrayNode values = out.putArray("values");
        scala.collection.Iterator iterator = in.hset().iterator();
        while (iterator.hasNext()) {
            JsonNode value = literal(iterator.next(), in.child().dataType());
            if ("opaque".equals(value.get("op").asText())) {
                out.put("op", "OpaqueInSet");
                out.remove("values");
                return;
            }
            values.add(value.get("value"));
        }
    }

    private static String text(Expression e) {
        try {
            return e.sql();
        } catch (RuntimeException problem) {
            return e.toString();
        }
    }

    private static List path(Expression e) {
        if (e instanceof Attribute) {
            List path = new ArrayList();
            path.add(((Attribute) e).name());
            return path;
        }
        if (e instanceof GetStructField) {
            GetStructField field = (GetStructField) e;
            List path = path(field.child());
            if (path != null) {
                path.add(field.childSchema().fields()[field.ordinal()].name());
            }
            return path;
        }
        return null;
    }

    static JsonNode literal(Object value, DataType dataType) {
        ObjectNode out = Bridge.object();
        out.put("op", "lit");
        out.set("type", type(dataType));
        if (value == null) {
            out.putNull("value");
        } else if (value instanceof Boolean) {
            out.put("value", ((Boolean) value).booleanValue());
        } else if (value instanceof Float || value instanceof Double) {
            out.put("value", value.toString());
        } else if (value instanceof Number && !(value instanceof java.math.BigDecimal)) {
            out.put("value", ((Number) value).longValue());
        } else if (value instanceof byte[]) {
            out.put("value", Base64.getEncoder().encodeToString((byte[]) value));
        } else if (value instanceof org.apache.spark.sql.types.Decimal) {
            org.apache.spark.sql.types.Decimal decimal = (org.apache.spark.sql.types.Decimal) value;
            out.put("value", decimal.toJavaBigDecimal().toPlainString());
        } else if (value instanceof org.apache.spark.unsafe.types.UTF8String) {
            out.put("value", value.toString());
        } else {
            out.put("op", "opaque");
            out.put("sql", value.toString());
        }
        return out;
    }

    static JsonNode type(DataType dataType) {
        try {
            return Bridge.JSON.readTree(dataType.json());
        } catch (java.io.IOException problem) {
            throw new IllegalStateException(problem);
        }
    }
}
