package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;

/**
 * The expressions that Spark groups and measures by, as nested JSON.
 *
 * {"op":"field","name":["a","b"]}, {"op":"lit","type":T,"value":V}, {"op":"CAST","type":T,
 * "children":[...]} and {"op":NAME,"children":[...]} with Spark's name of the function. Values are
 * written as CatalystJson writes them. What has no such form is null.
 */
final class ConnectorJson {
    private ConnectorJson() {}

    /** {"groupBy":[...],"aggregates":[...]}; null where a part has no form. */
    static ObjectNode aggregation(Aggregation aggregation) {
        ObjectNode out = Bridge.object();
        ArrayNode groups = out.putArray("groupBy");
        Expression[] keys = aggregation.groupByExpressions();
        for (int i = 0; i < keys.length; i++) {
            JsonNode key = node(keys[i]);
            if (key == null) {
                return null;
            }
            groups.add(key);
        }
        ArrayNode functions = out.putArray("aggregates");
        AggregateFunc[] wanted = aggregation.aggregateExpressions();
        for (int i = 0; i < wanted.length; i++) {
            ObjectNode function = functions.addObject();
            function.put("function", wanted[i].getClass().getSimpleName());
            function.put("distinct", wanted[i].toString().contains("DISTINCT"));
            Expression[] children = wanted[i].children();
            JsonNode measure = children.length == 1 ? node(children[0]) : null;
            if (children.length != 0 && measure == null) {
                return null;
            }
            function.set("measure", measure);
        }
        return out;
    }

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
