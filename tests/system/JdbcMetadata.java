import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/**
 * What JDBC's DatabaseMetaData says, a line for each row: the question, and columns by name.
 *
 * <p>java -cp /usr/share/java/postgresql.jar JdbcMetadata.java jdbc:postgresql://…
 */
public class JdbcMetadata {
    interface Question {
        ResultSet ask(DatabaseMetaData about) throws SQLException;
    }

    static void tell(String name, DatabaseMetaData about, Question question, String... columns)
            throws SQLException {
        try (ResultSet rows = question.ask(about)) {
            System.out.println(name);
            while (rows.next()) {
                List<String> row = new ArrayList<>();
                for (String column : columns) row.add(String.valueOf(rows.getString(column)));
                System.out.println(name + "\t" + String.join("\t", row));
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0], "root", "")) {
            DatabaseMetaData about = connection.getMetaData();
            tables(about);
            keys(about);
            others(about);
            facts(about);
            results(connection);
        }
    }

    static void tables(DatabaseMetaData about) throws SQLException {
        String[] kinds = {"TABLE", "VIEW", "SEQUENCE"};
        tell("tables", about, d -> d.getTables(null, "public", "%", kinds),
            "TABLE_NAME", "TABLE_TYPE", "REMARKS");
        tell("columns", about, d -> d.getColumns(null, "public", "%", "%"),
            "TABLE_NAME", "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS",
            "IS_NULLABLE", "COLUMN_DEF", "IS_AUTOINCREMENT");
        tell("schemas", about, d -> d.getSchemas(), "TABLE_SCHEM");
        tell("catalogs", about, d -> d.getCatalogs(), "TABLE_CAT");
        tell("kinds", about, d -> d.getTableTypes(), "TABLE_TYPE");
    }

    static void keys(DatabaseMetaData about) throws SQLException {
        tell("primary", about, d -> d.getPrimaryKeys(null, "public", "orders"),
            "COLUMN_NAME", "KEY_SEQ", "PK_NAME");
        String[] key = {"PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME",
            "KEY_SEQ", "DELETE_RULE", "FK_NAME", "PK_NAME"};
        tell("imported", about, d -> d.getImportedKeys(null, "public", "orders"), key);
        tell("exported", about, d -> d.getExportedKeys(null, "public", "customers"), key);
        tell("crossed", about,
            d -> d.getCrossReference(null, "public", "customers", null, "public", "orders"), key);
        tell("indexes", about, d -> d.getIndexInfo(null, "public", "orders", false, false),
            "INDEX_NAME", "NON_UNIQUE", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC");
        tell("unique", about, d -> d.getIndexInfo(null, "public", "customers", true, false),
            "INDEX_NAME", "COLUMN_NAME");
        tell("best", about, d -> d.getBestRowIdentifier(null, "public", "orders",
            DatabaseMetaData.bestRowSession, true), "COLUMN_NAME", "TYPE_NAME");
        tell("version", about, d -> d.getVersionColumns(null, "public", "orders"), "COLUMN_NAME");
    }

    static void others(DatabaseMetaData about) throws SQLException {
        tell("types", about, d -> d.getTypeInfo(), "TYPE_NAME", "DATA_TYPE");
        tell("procedures", about, d -> d.getProcedures(null, null, "%"), "PROCEDURE_NAME");
        tell("procedure columns", about, d -> d.getProcedureColumns(null, null, "%", "%"),
            "COLUMN_NAME");
        tell("functions", about, d -> d.getFunctions(null, null, "%"), "FUNCTION_NAME");
        tell("function columns", about, d -> d.getFunctionColumns(null, null, "%", "%"),
            "COLUMN_NAME");
        tell("own types", about, d -> d.getUDTs(null, null, "%", null), "TYPE_NAME");
        tell("rights", about, d -> d.getTablePrivileges(null, "public", "orders"),
            "GRANTEE", "PRIVILEGE");
        tell("column rights", about, d -> d.getColumnPrivileges(null, "public", "orders", "id"),
            "GRANTEE", "PRIVILEGE");
        tell("properties", about, d -> d.getClientInfoProperties(), "NAME");
    }

    /** Every question that takes no argument and is answered by one value. */
    static void facts(DatabaseMetaData about) throws Exception {
        for (Method method : DatabaseMetaData.class.getMethods()) {
            Class<?> type = method.getReturnType();
            boolean plain = type == int.class || type == boolean.class || type == String.class;
            if (method.getParameterCount() > 0 || !plain) continue;
            try {
                Object answer = method.invoke(about);
                System.out.println("fact\t" + method.getName() + "\t" + answer);
            } catch (InvocationTargetException error) {
                throw new IllegalStateException(method.getName(), error.getCause());
            }
        }
    }

    static void results(Connection connection) throws SQLException {
        String query = "SELECT o.*, o.amount + 1 AS more, l.id AS \"Same\" "
            + "FROM orders o JOIN large l ON l.id = o.id WHERE o.id = ?";
        try (PreparedStatement prepared = connection.prepareStatement(query)) {
            ResultSetMetaData shape = prepared.getMetaData();
            for (int i = 1; i <= shape.getColumnCount(); i++) {
                System.out.println(String.join("\t", "result", shape.getColumnName(i),
                    shape.getColumnTypeName(i), shape.getTableName(i),
                    String.valueOf(shape.isNullable(i)), String.valueOf(shape.getPrecision(i)),
                    String.valueOf(shape.isAutoIncrement(i))));
            }
            String type = prepared.getParameterMetaData().getParameterTypeName(1);
            System.out.println("parameter\t" + type);
        }
        edit(connection);
        zone(connection);
    }

    /** The driver begins the session in the zone of its machine. */
    static void zone(Connection connection) throws SQLException {
        String moment = "SELECT current_setting('timezone') AS zone, "
            + "TIMESTAMPTZ '2020-07-01 00:00'::TEXT AS written, "
            + "TIMESTAMPTZ '2020-06-30 22:00Z' AS moment";
        try (Statement statement = connection.createStatement()) {
            tell("zone", connection.getMetaData(), d -> statement.executeQuery(moment),
                "zone", "written", "moment");
        }
    }

    /** Rows are changed through a result, which needs to know the table and its key. */
    static void edit(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement(
                ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
            try (ResultSet rows = statement.executeQuery("SELECT * FROM customers")) {
                rows.moveToInsertRow();
                rows.updateLong("id", 7);
                rows.updateString("name", "ada");
                rows.insertRow();
                rows.first();
                rows.updateString("name", "grace");
                rows.updateRow();
            }
            tell("edited", connection.getMetaData(),
                d -> statement.executeQuery("SELECT id, name FROM customers"), "id", "name");
        }
    }
}
