import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.concurrent.TimeUnit;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.ContextHandler;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBRequestHandler;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBServerHandler;
import software.amazon.dynamodb.services.local.shared.access.AmazonDynamoDBLocal;

/**
 * DynamoDB Local in memory, on a free port of the loopback interface.
 *
 * <p>Its own main class always binds every interface and cannot roll a shard over on demand; hence this one.
 * The first line of standard output is the port. Commands come in on standard input, one a line, each answered by
 * "ok" or "error ...": "rollover" closes every open shard and opens a child of it, "age HOURS" makes what is stored
 * that much older. End of input stops the server, so it cannot outlive the process that holds the other end.
 */
final class Launcher {
    private static final String LOOPBACK = "127.0.0.1";
    private static final String SHARED_DATABASE = "shared-local-instance";

    public static void main(String[] arguments) throws Exception {
        var requests = new LocalDynamoDBRequestHandler(0, true, null, true, false);
        var server = new Server();
        var connector = new ServerConnector(server);
        connector.setHost(LOOPBACK);
        connector.setPort(0);
        // Jetty would close after 30 s a connection that a client's pool is about to use again.
        connector.setIdleTimeout(TimeUnit.DAYS.toMillis(1));
        server.addConnector(connector);
        server.setHandler(new ContextHandler(new LocalDynamoDBServerHandler(requests, null), "/"));
        server.start();
        System.out.println(connector.getLocalPort());

        var database = database(requests);
        var commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            System.out.println(answer(database, line.strip()));
        }
        // Worker threads of the engine are no daemons and a stop waits for idle connections: leave at once.
        Runtime.getRuntime().halt(0);
    }

    private static String answer(AmazonDynamoDBLocal database, String command) {
        try {
            if (command.equals("rollover")) {
                database.triggerShardRollovers();
            } else if (command.startsWith("age ")) {
                database.dilateEventTimes(TimeUnit.HOURS.toMillis(Long.parseLong(command.substring(4))));
            } else {
                return "error unknown command " + command;
            }
            return "ok";
        } catch (RuntimeException failure) {
            return "error " + failure;
        }
    }

    // The engine's handle has public methods for both commands, but no public way leads from the server to it.
    private static AmazonDynamoDBLocal database(LocalDynamoDBRequestHandler requests) throws Exception {
        Method getHandler = LocalDynamoDBRequestHandler.class.getDeclaredMethod("getHandler", String.class);
        getHandler.setAccessible(true);
        return (AmazonDynamoDBLocal) getHandler.invoke(requests, SHARED_DATABASE);
    }
}
