// PostGraphile over the peers' views of the bench's tables, as its documentation sets it up: the Amber preset, the adaptor of pg, and its own
// server. The environment says where: DATABASE_URL, POOL (connections of each process) and PROCESSES (that share the port).
// It prints "ready PORT" once all processes accept connections.
import cluster from "node:cluster";
import { createServer } from "node:http";

const processes = Number(process.env.PROCESSES ?? 1);

if (cluster.isPrimary) {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  let ready = 0;
  cluster.on("message", (_worker, port) => {
    if (++ready === processes) console.log("ready", port);
  });
  cluster.on("exit", () => process.exit(1));
  for (let i = 0; i < processes; i++) cluster.fork();
} else {
  const { postgraphile } = await import("postgraphile");
  const { PostGraphileAmberPreset } = await import("postgraphile/presets/amber");
  const { makePgService } = await import("postgraphile/adaptors/pg");
  const { grafserv } = await import("postgraphile/grafserv/node");
  const server = createServer({ keepAliveTimeout: 60_000 });
  const service = makePgService({
    connectionString: process.env.DATABASE_URL,
    schemas: ["peers"],
    poolConfig: { max: Number(process.env.POOL ?? 16) },
  });
  const instance = postgraphile({
    extends: [PostGraphileAmberPreset],
    pgServices: [service],
    grafserv: { graphiql: false, watch: false, websockets: false },
    grafast: { explain: false },
  });
  const grafservInstance = instance.createServ(grafserv);
  await grafservInstance.addTo(server);
  await grafservInstance.ready?.();
  server.listen(0, "127.0.0.1", () => process.send(server.address().port));
}
