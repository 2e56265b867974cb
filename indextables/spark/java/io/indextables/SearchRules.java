package io.indextables;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.collection.mutable.ListBuffer;

/**
 * Text searches on their way through the optimizer.
 *
 * Early: a search that a view names by catalog becomes the session's function, which scans know;
 * and one above an outer join says that its column is not NULL, so that Spark may make the join an
 * inner one and bring the search to the scan. Late, when scans have taken what they can: a search
 * that is left gets the note by which workers answer it on the values, or is refused here.
 */
public final class SearchRules {
    private SearchRules() {}

    /** Let a session plan searches; once is enough, more is harmless. */
    public static void install(SparkSession session) {
        Seq late = session.experimental().extraOptimizations();
        ListBuffer all = new ListBuffer();
        for (int i = 0; i < late.size(); i++) {
            if (late.apply(i) instanceof Late) {
                return;
            }
            all.addOne(late.apply(i));
        }
        all.addOne(new Late());
        session.experimental().extraOptimizations_$eq(all.toList());
        session.extensions().injectOptimizerRule(new Make());
    }

    static final class Make extends scala.runtime.AbstractFunction1 {
        public Object apply(Object session) {
            return new Early((SparkSession) session);
        }
    }

    static boolean isSearch(Object expression) {
        return expression instanceof PythonUDF && isName(((PythonUDF) expression).name());
    }

    static boolean isName(String name) {
        String plain = name.toLowerCase();
        plain = plain.startsWith("tantivy4spark_") ? plain.substring(14) : plain;
        plain = plain.endsWith("all") ? plain.substring(0, plain.length() - 3) : plain;
        return plain.equals("textsearch") || plain.equals("fieldmatch") || plain.equals("indexquery");
    }

    // -- early -----------------------------------------------------------------------------------

    static final class Early extends Rule {
        private final SparkSession session;

        Early(SparkSession session) {
            this.session = session;
        }

        public String ruleName() {
            return "io.indextables.SearchRules.Early";
        }

        public org.apache.spark.sql.catalyst.trees.TreeNode apply(
            org.apache.spark.sql.catalyst.trees.TreeNode plan) {
            if (plan instanceof CreateTableLikeCommand) {
                Entry.refuseLike((CreateTableLikeCommand) plan);
            }
            LogicalPlan named =
                (LogicalPlan) ((LogicalPlan) plan).transformAllExpressions(new Named(session));
            return named.transformUp(new Rejecting());
        }
    }

    /** A function of our catalog, as views name it, becomes the session's function. */
    static final class Named extends scala.runtime.AbstractPartialFunction {
        private final SparkSession session;

        Named(SparkSession session) {
            this.session = session;
        }

        public boolean isDefinedAt(Object expression) {
            return expression instanceof ApplyFunctionExpression
                && ((ApplyFunctionExpression) expression).function() instanceof SearchFunction.Bound;
        }

        public Object applyOrElse(Object expression, scala.Function1 otherwise) {
            if (!isDefinedAt(expression)) {
                return otherwise.apply(expression);
            }
            ApplyFunctionExpression call = (ApplyFunctionExpression) expression;
            FunctionRegistry known = session.sessionState().functionRegistry();
            Seq names = known.listFunction();
            for (int i = 0; i < names.size(); i++) {
                FunctionIdentifier name = (FunctionIdentifier) names.apply(i);
                if (name.funcName().equalsIgnoreCase(call.function().name())) {
                    return made(known, name, call.children());
                }
            }
            throw new IllegalArgumentException(
                "indextables: register this session with indextables.register(spark) to search");
        }

        private static Object made(FunctionRegistry known, FunctionIdentifier name, Seq children) {
            try {
                return known.lookupFunction(name, children);
            } catch (Exception problem) {
                throw new IllegalArgumentException(problem);
            }
        }
    }

    /** A row that a search keeps has a value in the searched column. */
    static final class Rejecting extends scala.runtime.AbstractPartialFunction {
        public boolean isDefinedAt(Object plan) {
            return plan instanceof Filter
                && ((Filter) plan).child() instanceof Join
                && !missing((Filter) plan).isEmpty();
        }

        public Object applyOrElse(Object plan, scala.Function1 otherwise) {
            if (!isDefinedAt(plan)) {
                return otherwise.apply(plan);
            }
            Filter filter = (Filter) plan;
            ListBuffer more = missing(filter);
            Expression condition = filter.condition();
            for (int i = 0; i < more.size(); i++) {
                condition = new And(new IsNotNull((Expression) more.apply(i)), condition);
            }
            return new Filter(condition, filter.child());
        }

        private static ListBuffer missing(Filter filter) {
            ListBuffer said = new ListBuffer();
            ListBuffer asked = new ListBuffer();
            walk(filter.condition(), said, asked);
            ListBuffer out = new ListBuffer();
            for (int i = 0; i < asked.size(); i++) {
                Attribute column = (Attribute) asked.apply(i);
                boolean known = !column.nullable();
                for (int k = 0; k < said.size() && !known; k++) {
                    known = ((Attribute) said.apply(k)).semanticEquals(column);
                }
                if (!known) {
                    out.addOne(column);
                    said.addOne(column);
                }
            }
            return out;
        }

        private static void walk(Expression e, ListBuffer said, ListBuffer asked) {
            if (e instanceof And) {
                walk(((And) e).left(), said, asked);
                walk(((And) e).right(), said, asked);
            } else if (e instanceof IsNotNull && ((IsNotNull) e).child() instanceof Attribute) {
                said.addOne(((IsNotNull) e).child());
            } else if (isSearch(e) && e.children().size() > 1
                && e.children().apply(0) instanceof Attribute) {
                asked.addOne(e.children().apply(0));
            }
        }
    }

    // -- late ------------------------------------------------------------------------------------

    static final class Late extends Rule {
        public String ruleName() {
            return "io.indextables.SearchRules.Late";
        }

        public org.apache.spark.sql.catalyst.trees.TreeNode apply(
            org.apache.spark.sql.catalyst.trees.TreeNode plan) {
            return ((LogicalPlan) plan).transformDown(new Noting());
        }
    }

    /** Searches of every part of a plan but its scans, which keep those they have taken. */
    static final class Noting extends scala.runtime.AbstractPartialFunction {
        public boolean isDefinedAt(Object plan) {
            return !(plan instanceof DataSourceV2ScanRelation);
        }

        public Object applyOrElse(Object plan, scala.Function1 otherwise) {
            return isDefinedAt(plan)
                ? ((LogicalPlan) plan).transformExpressions(new Noted())
                : otherwise.apply(plan);
        }
    }

    /** A search without a note gets one. */
    static final class Noted extends scala.runtime.AbstractPartialFunction {
        public boolean isDefinedAt(Object expression) {
            return isSearch(expression) && ((PythonUDF) expression).children().size() < 3;
        }

        public Object applyOrElse(Object expression, scala.Function1 otherwise) {
            if (!isDefinedAt(expression)) {
                return otherwise.apply(expression);
            }
            PythonUDF call = (PythonUDF) expression;
            ListBuffer children = new ListBuffer();
            for (int i = 0; i < call.children().size(); i++) {
                children.addOne(call.children().apply(i));
            }
            String note = Bridge.ask("search", question(call)).get("note").asText();
            children.addOne(new Literal(UTF8String.fromString(note), DataTypes.StringType));
            return new PythonUDF(
                call.name(),
                call.func(),
                call.dataType(),
                children.toList(),
                call.evalType(),
                call.udfDeterministic(),
                call.resultId());
        }

        private static ObjectNode question(PythonUDF call) {
            ObjectNode out = Bridge.object();
            out.put("verb", call.name().toLowerCase());
            out.put("timeZone", SQLConf.get().sessionLocalTimeZone());
            if (call.children().size() < 2) {
                return out;
            }
            Expression column = (Expression) call.children().apply(0);
            Object query = call.children().apply(1);
            out.set("type", CatalystJson.type(column.dataType()));
            if (column instanceof Attribute) {
                Attribute attribute = (Attribute) column;
                out.put("name", attribute.name());
                if (attribute.metadata().contains("indextables.field")) {
                    out.put("note", attribute.metadata().getString("indextables.field"));
                }
            }
            if (query instanceof Literal && ((Literal) query).value() != null) {
                out.put("query", ((Literal) query).value().toString());
            }
            return out;
        }
    }
}
