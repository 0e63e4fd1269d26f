// The main of an adapter: flags, structured log, HTTP server, signals. An adapter's own main is then one call:
//
//     await main({ name: "my-adapter", build: "1.0.0", manifest, make: (folder) => myApp(folder) });
import * as fs from "node:fs";
import * as path from "node:path";
import { parseArgs } from "node:util";
import type { App } from "./app.js";
import { Engine } from "./engine.js";
import { levels, Log, type Level } from "./log.js";
import { Routes } from "./routes.js";
import { Server, type Tls } from "./server.js";
import { Verifier } from "./verify.js";

const usage = `usage: --platform-url URL --state-dir DIR [flags]
  --platform-url    the platform's URL
  --state-dir       directory of the journal; it must survive restarts
  --name            the adapter's registered name
  --listen          HOST:PORT to listen on (default 127.0.0.1:0)
  --jwks-url        the platform's key set (default platform-url/.well-known/jwks.json)
  --issuer          issuer of the platform's request tokens (default platform-url)
  --graphql-url     the public API (default platform-url/graphql)
  --log-level       debug, info, warn or error (default info)
  --tls-cert        certificate chain to serve https with, PEM
  --tls-key         private key of --tls-cert, PEM
  --tls-client-ca   CA of the platform's client certificate, PEM; callers without a certificate of this CA are refused
  --print-manifest  print the app manifest and exit`;

/** Program describes one adapter: the default of --name, its build, which a conformance report names, its manifest, and
 * make, which returns the app, given a folder of the app's own that outlives restarts. */
export interface Program { name: string; build: string; manifest: string; make(folder: string): App }

/** Setup holds what a controller needs. */
export interface Setup {
  name: string; build: string; apps: readonly App[]; stateDir: string; issuer: string; jwksUrl: string;
  graphqlUrl: string; log: Log; tls?: Tls;
}

/** Controller is a running adapter: its engine and its server. */
export class Controller {
  readonly engine: Engine;
  private readonly server: Server;

  constructor(private readonly setup: Setup) {
    const apps = new Map(setup.apps.map((app) => [app.slug, app]));
    const { log, name, build, graphqlUrl } = setup;
    this.engine = new Engine(path.join(setup.stateDir, "journal"), log, (slug, kind) =>
      apps.get(slug)?.functions.operations[kind as never]);
    const routes = new Routes(this.engine, setup.apps, { name, build, graphqlUrl });
    this.server = new Server(routes, new Verifier(setup.issuer, name, setup.jwksUrl), log, setup.tls);
  }

  /** start resumes the operations that had not ended, and serves; it returns the address as HOST:PORT. */
  async start(host = "127.0.0.1", port = 0): Promise<string> {
    const address = await this.server.listen(host, port);
    this.setup.log.info("listening", { address, platform: this.setup.issuer, build: this.setup.build });
    this.engine.start(); // first: no request is answered before the operations are loaded
    return address;
  }

  /** stop parks the runs, which the next start resumes, ends long polls, and closes the server. */
  async stop(): Promise<void> { await Promise.all([this.engine.stop(), this.server.stop()]); }
}

function flagsOf(args: string[]): Record<string, string | boolean | undefined> {
  const text = { type: "string" } as const;
  return parseArgs({
    args, options: {
      "platform-url": text, "state-dir": text, name: text, listen: text, "jwks-url": text, issuer: text,
      "graphql-url": text, "log-level": text, "tls-cert": text, "tls-key": text, "tls-client-ca": text,
      "print-manifest": { type: "boolean" },
    },
  }).values;
}

interface Options { setup: Omit<Setup, "apps">; host: string; port: number }

function optionsOf(program: Program, flags: ReturnType<typeof flagsOf>): Options {
  const flag = (name: string, otherwise = ""): string => (flags[name] as string | undefined) ?? otherwise;
  const platform = flag("platform-url").replace(/\/+$/, "");
  const stateDir = flag("state-dir");
  if (platform === "") throw new Error("--platform-url must be given");
  if (stateDir === "") throw new Error("--state-dir must be given");
  const at = /^(.*):([0-9]{1,5})$/.exec(flag("listen", "127.0.0.1:0"));
  if (at === null || Number(at[2]) > 65_535) throw new Error("--listen must be HOST:PORT");
  const level = flag("log-level", "info") as Level;
  if (!levels.includes(level)) throw new Error(`--log-level must be one of ${levels.join(", ")}`);
  const name = flag("name", program.name);
  const tls = tlsOf(flag("tls-cert"), flag("tls-key"), flag("tls-client-ca"));
  const setup = {
    name, build: program.build, stateDir, issuer: flag("issuer", platform), log: new Log(level, { adapter: name }),
    jwksUrl: flag("jwks-url", `${platform}/.well-known/jwks.json`), graphqlUrl: flag("graphql-url", `${platform}/graphql`),
    ...(tls === undefined ? {} : { tls }),
  };
  return { setup, host: (at[1] ?? "").replace(/^\[|\]$/g, ""), port: Number(at[2]) };
}

function tlsOf(cert: string, key: string, clientCa: string): Tls | undefined {
  if ((cert === "") !== (key === "")) throw new Error("--tls-cert and --tls-key go together");
  if (clientCa !== "" && cert === "") throw new Error("--tls-client-ca needs --tls-cert");
  if (cert === "") return undefined;
  return clientCa === "" ? { cert, key } : { cert, key, clientCa };
}

/** main runs an adapter until SIGINT or SIGTERM. It exits with 2 after a misuse of the flags, and with 1 when the
 * adapter cannot start. */
export async function main(program: Program, args = process.argv.slice(2)): Promise<void> {
  let options: Options;
  try {
    const flags = flagsOf(args);
    if (flags["print-manifest"] === true) return void process.stdout.write(program.manifest);
    options = optionsOf(program, flags);
  } catch (error) {
    console.error(`${(error as Error).message}\n${usage}`);
    process.exit(2);
  }
  try {
    await serve(program, options);
  } catch (error) {
    console.error((error as Error).message);
    process.exit(1);
  }
}

async function serve(program: Program, { setup, host, port }: Options): Promise<void> {
  const own = path.join(setup.stateDir, "app");
  fs.mkdirSync(own, { recursive: true, mode: 0o700 });
  const controller = new Controller({ ...setup, apps: [program.make(own)] });
  await controller.start(host, port);
  const stop = (): void => {
    setup.log.info("stopping");
    void controller.stop().then(() => process.exit(0));
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}
