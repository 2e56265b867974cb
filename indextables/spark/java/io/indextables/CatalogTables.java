package io.indextables;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.net.URI;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Makes entries for the session's catalog, on any Spark.
 *
 * The first five fields of a CatalogTable and the properties of its storage, the last there, have
 * been the same for years; what came later has defaults, which are asked for by their number.
 */
final class CatalogTables {
    private CatalogTables() {}

    static CatalogTable make(
        TableIdentifier name, CatalogTableType kind, URI place, Map options, String provider) {
        CatalogStorageFormat storage = (CatalogStorageFormat) filled(CatalogStorageFormat.class, new Object[] {
            Option.apply(place), Option.empty(), Option.empty(), Option.empty(),
            Boolean.FALSE, scalaMap(options)});
        return (CatalogTable) filled(CatalogTable.class, new Object[] {
            name, kind, storage, new StructType(), Option.apply(provider)});
    }

    private static Object filled(Class type, Object[] first) {
        Constructor longest = type.getConstructors()[0];
        Object[] values = new Object[longest.getParameterTypes().length];
        try {
            for (int i = 0; i < values.length; i++) {
                values[i] = i < first.length ? first[i] : defaultOf(type, i);
            }
            return longest.newInstance(values);
        } catch (Exception problem) {
            throw new IllegalStateException(
                "indextables: this Spark's " + type.getSimpleName() + " is of an unknown form", problem);
        }
    }

    private static Object defaultOf(Class type, int i) throws Exception {
        Method method = type.getMethod("apply$default$" + (i + 1), new Class[0]);
        return method.invoke(null, new Object[0]);
    }

    private static Object scalaMap(Map options) {
        scala.collection.immutable.Map out = (scala.collection.immutable.Map)
            scala.collection.immutable.Map$.MODULE$.empty();
        Iterator entries = options.entrySet().iterator();
        while (entries.hasNext()) {
            Map.Entry entry = (Map.Entry) entries.next();
            out = (scala.collection.immutable.Map) out.updated(entry.getKey(), entry.getValue());
        }
        return out;
    }
}
