// The main of an adapter: flags, HTTP server, signals.
import * as fs from "node:fs";
import * as path from "node:path";
import { parseArgs } from "node:util";
import type { AddressInfo } from "node:net";
import type { App } from "./app.js";
import { Engine } from "./engine.js";
import { Server } from "./server.js";
import { Verifier } from "./verify.js";

const usage = `usage: node dist/src/main.js --platform-url URL --state-dir DIR [flags]
  --platform-url  the platform's URL: issuer of its requests; key set and public API lie below it
  --state-dir     directory of the journal; it must outlive restarts
  --name          the adapter's registered name
  --listen        HOST:PORT to listen on (default 127.0.0.1:0)
  --jwks-url      the platform's key set (default platform-url/.well-known/jwks.json)
  --graphql-url   the public API (default platform-url/graphql)`;

interface Options { platform: string; stateDir: string; name: string; host: string; port: number; jwks: string; graphql: string }

/** Spec is what one adapter is: the default of --name, its build, and what makes the app, given a folder of the app's own. */
export interface Spec { name: string; build: string; make(folder: string): App }

function options(spec: Spec, args: string[]): Options {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args, options: { "platform-url": text, "state-dir": text, name: text, listen: text, "jwks-url": text, "graphql-url": text },
  });
  const platform = (values["platform-url"] ?? "").replace(/\/$/, "");
  const stateDir = values["state-dir"] ?? "";
  if (platform === "") throw new Error("--platform-url must be given");
  if (stateDir === "") throw new Error("--state-dir must be given");
  const at = /^(.*):([0-9]{1,5})$/.exec(values.listen ?? "127.0.0.1:0");
  if (at === null || Number(at[2]) > 65_535) throw new Error("--listen must be HOST:PORT");
  return {
    platform, stateDir, name: values.name ?? spec.name, host: (at[1] ?? "").replace(/^\[|\]$/g, ""), port: Number(at[2]),
    jwks: values["jwks-url"] ?? `${platform}/.well-known/jwks.json`, graphql: values["graphql-url"] ?? `${platform}/graphql`,
  };
}

/** main runs an adapter until SIGINT or SIGTERM. */
export function main(spec: Spec): void {
  let given: Options;
  try {
    given = options(spec, process.argv.slice(2));
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
    process.exit(2);
  }
  fs.mkdirSync(given.stateDir, { recursive: true, mode: 0o700 });
  const app = spec.make(path.join(given.stateDir, "usage"));
  const engine = new Engine(app, path.join(given.stateDir, "journal"));
  const server = new Server(engine, app, new Verifier(given.platform, given.name, given.jwks), { name: given.name, build: spec.build, graphqlUrl: given.graphql });
  engine.start();
  server.http.listen(given.port, given.host, () => {
    const { address, port } = server.http.address() as AddressInfo;
    console.error(JSON.stringify({ level: "info", message: "listening", address: `${address}:${port}`, platform: given.platform }));
  });
  const stop = (): void => {
    void Promise.all([engine.stop(), server.stop()]).then(() => process.exit(0));
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}
