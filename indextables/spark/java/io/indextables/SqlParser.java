package io.indextables;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;

/**
 * Stands in front of the session's SQL parser and lets everything pass that is not ours.
 *
 * Text with one of our operators goes to Python and comes back as plain Spark SQL; one of our
 * commands comes back as the plan of its result. The rest never leaves the JVM.
 */
public final class SqlParser implements InvocationHandler {
    private static final Pattern FOREIGN =
        Pattern.compile(
            "\\b(OPTIMIZE|VACUUM|RESTORE|FSCK|GENERATE|CONVERT|CLONE|FIELD|WRITE|BRANCH|TAG)\\b",
            Pattern.CASE_INSENSITIVE);

    private final ParserInterface inner;
    private final Pattern ours;
    private final String key;

    private SqlParser(ParserInterface inner, Pattern ours, String key) {
        this.inner = inner;
        this.ours = ours;
        this.key = key;
    }

    /**
     * Put a parser in front of the session's; text that the pattern finds goes to Python, which
     * knows the session by the key.
     */
    public static void install(SparkSession session, String pattern, String key)
        throws Exception {
        SessionState state = session.sessionState();
        ParserInterface current = plain(state);
        Pattern ours = Pattern.compile(pattern, Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
        Object proxy =
            Proxy.newProxyInstance(
                SqlParser.class.getClassLoader(),
                new Class[] {ParserInterface.class},
                new SqlParser(current, ours, key));
        set(state, proxy);
    }

    /** Give the session its own parser back. */
    public static void remove(SparkSession session) throws Exception {
        set(session.sessionState(), plain(session.sessionState()));
    }

    private static ParserInterface plain(SessionState state) {
        ParserInterface current = state.sqlParser();
        boolean ours =
            Proxy.isProxyClass(current.getClass())
                && Proxy.getInvocationHandler(current) instanceof SqlParser;
        return ours ? ((SqlParser) Proxy.getInvocationHandler(current)).inner : current;
    }

    private static void set(SessionState state, Object parser) throws Exception {
        Field field = SessionState.class.getDeclaredField("sqlParser");
        field.setAccessible(true);
        field.set(state, parser);
    }

    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        if (takesSql(method) && ours.matcher((String) arguments[0]).find()) {
            ObjectNode request = Bridge.object();
            request.put("text", (String) arguments[0]);
            request.put("key", key);
            JsonNode answer = Bridge.ask("sql", request);
            if (answer.has("command") && method.getName().startsWith("parsePlan")) {
                return Bridge.plan((String) arguments[0], key);
            }
            if (answer.has("sql")) {
                arguments[0] = answer.get("sql").asText();
            }
        }
        try {
            return method.invoke(inner, arguments);
        } catch (InvocationTargetException problem) {
            throw method.getName().startsWith("parsePlan")
                ? advised(problem.getCause(), (String) arguments[0])
                : problem.getCause();
        }
    }

    /** A statement of another format that Spark cannot read: what we have in its place. */
    private static Throwable advised(Throwable problem, String text) {
        if (!(problem instanceof ParseException) || !FOREIGN.matcher(text).find()) {
            return problem;
        }
        ObjectNode request = Bridge.object();
        request.put("text", text);
        String instead = Bridge.ask("advice", request).get("advice").asText();
        return instead.isEmpty()
            ? problem
            : new UnsupportedOperationException("indextables: " + instead, problem);
    }

    private static boolean takesSql(Method method) {
        String name = method.getName();
        return "parsePlan".equals(name)
            || "parsePlanWithParameters".equals(name)
            || "parseQuery".equals(name)
            || "parseExpression".equals(name);
    }
}
