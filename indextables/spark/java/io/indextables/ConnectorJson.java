package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;

/**
 * The expressions that Spark groups and measures by, as nested JSON.
 *
 * {"op":"field","name":["a","b"]}, {"op":"lit","type":T,"value":V}, {"op":"CAST","type":T,
 * "children":[...]} and {"op":NAME,"children":[...]} with Spark's name of the function. Values are
 * written as CatalystJson writes them. What has no such form is null.
 */
final class ConnectorJson {
    private ConnectorJson() {}

    static JsonNode node(Expression e) {
        ObjectNode out = Bridge.object();
        if (e instanceof NamedReference) {
            out.put("op", "field");
            ArrayNode names = out.putArray("name");
            String[] parts = ((NamedReference) e).fieldNames();
            for (int i = 0; i < parts.length; i++) {
                names.add(parts[i]);
            }
            return out;
        }
        if (e instanceof Literal) {
            Literal literal = (Literal) e;
            JsonNode made = CatalystJson.literal(literal.value(), literal.dataType());
            return "lit".equals(made.get("op").asText()) ? made : null;
        }
        if (e instanceof Cast) {
            out.put("op", "CAST");
            out.set("type", CatalystJson.type(((Cast) e).dataType()));
        } else if (e instanceof GeneralScalarExpression) {
            out.put("op", ((GeneralScalarExpression) e).name());
        } else {
            return null;
        }
        return withChildren(out, e.children());
    }

    private static JsonNode withChildren(ObjectNode out, Expression[] children) {
        ArrayNode made = out.putArray("children");
        for (int i = 0; i < children.length; i++) {
            JsonNode child = node(children[i]);
            if (child == null) {
                return null;
            }
            made.add(child);
        }
        return out;
    }
}
