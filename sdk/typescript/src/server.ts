// HTTP around the routes: nothing is answered without a valid request token, whose signature is verified before the
// body is read, so that strangers cannot fill the adapter's memory with bodies.
import * as fs from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import type { AddressInfo } from "node:net";
import * as tls from "node:tls";
import { clip, maxBody, maxMessage, Refusal } from "./contract.js";
import type { Log } from "./log.js";
import { traceId } from "./platform.js";
import type { Answer, Routes } from "./routes.js";
import type { Verifier } from "./verify.js";

const maxConnections = 256;
const readTime = 30_000;
const stopTime = 5000;

/** Tls names the files to serve https with, which are read again for every handshake. */
export interface Tls { cert: string; key: string; clientCa?: string }

/** Server serves the contract on one address. */
export class Server {
  private readonly http: http.Server;

  constructor(private readonly routes: Routes, private readonly verifier: Verifier, private readonly log: Log,
    files?: Tls) {
    const options = { requestTimeout: readTime, headersTimeout: readTime, maxHeaderSize: 64 << 10 };
    const serve = (req: http.IncomingMessage, res: http.ServerResponse): void => void this.serve(req, res);
    this.http = files === undefined ? http.createServer(options, serve) : secured(files, options, serve, log);
    this.http.maxConnections = maxConnections;
    this.http.on("tlsClientError", (error: Error) => log.debug("connection refused", { error: error.message }));
  }

  /** listen serves on a host and port, and returns the address as HOST:PORT. */
  listen(host: string, port: number): Promise<string> {
    return new Promise((resolve, reject) => {
      this.http.once("error", reject);
      this.http.listen(port, host, () => {
        const at = this.http.address() as AddressInfo;
        resolve(at.family === "IPv6" ? `[${at.address}]:${at.port}` : `${at.address}:${at.port}`);
      });
    });
  }

  /** stop lets open requests end, for at most five seconds. */
  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.http.close(() => resolve());
      this.http.closeIdleConnections();
      setTimeout(() => this.http.closeAllConnections(), stopTime).unref();
    });
  }

  private async serve(req: http.IncomingMessage, res: http.ServerResponse): Promise<void> {
    if (req.method === "GET" && req.url === "/healthz") {
      return void res.writeHead(200, { "Content-Type": "text/plain" }).end("ok\n");
    }
    const correlation = header(req, "x-correlation-id");
    const known = /^[A-Za-z0-9._-]{1,64}$/.test(correlation);
    const path = req.url?.split("?")[0];
    const traced = traceId(header(req, "traceparent"));
    const log = this.log.bind({ method: req.method, path, ...(known ? { correlation_id: correlation } : {}),
      ...(traced === "" ? {} : { trace_id: traced }) });
    let answer = await this.handle(req, res, log).catch((error: unknown) => refused(error, log));
    let raw = JSON.stringify(answer.body);
    if (Buffer.byteLength(raw) > maxBody) {
      log.error("the answer is larger than 1 MiB", { status: answer.status });
      answer = refused(new Error("too large"), log);
      raw = JSON.stringify(answer.body);
    }
    log.debug("request", { status: answer.status });
    if (known) res.setHeader("X-Correlation-ID", correlation);
    if (answer.status === 413) res.setHeader("Connection", "close");
    res.writeHead(answer.status, { "Content-Type": "application/json", "Cache-Control": "no-store" }).end(raw);
    req.resume(); // discards the unread body of a refused request
  }

  private async handle(req: http.IncomingMessage, res: http.ServerResponse, log: Log): Promise<Answer> {
    const gone = new AbortController();
    res.on("close", () => gone.abort(new Error("the caller closed the connection")));
    const target = req.url ?? "/";
    const claims = await this.verifier.open(req.headers.authorization);
    const body = await read(req);
    const method = req.method ?? "";
    this.verifier.check(claims, method, target, body);
    const url = new URL(`http://adapter${target.startsWith("/") ? target : "/"}`);
    return await this.routes.answer({
      method, url, body, log, signal: gone.signal, header: (name) => header(req, name),
    });
  }
}

function secure(files: Tls): tls.SecureContextOptions & Pick<tls.TlsOptions, "requestCert" | "rejectUnauthorized"> {
  const own = { cert: fs.readFileSync(files.cert), key: fs.readFileSync(files.key), minVersion: "TLSv1.2" as const };
  if (files.clientCa === undefined) return own;
  return { ...own, ca: fs.readFileSync(files.clientCa), requestCert: true, rejectUnauthorized: true };
}

/** secured serves https with the files as they are at each connection, so that a new certificate needs no restart. When
 * they cannot be read, the last ones stay in use. */
function secured(files: Tls, options: http.ServerOptions, serve: http.RequestListener, log: Log): https.Server {
  const server = https.createServer({ ...options, ...secure(files) }, serve);
  server.prependListener("connection", () => {
    try {
      server.setSecureContext(secure(files));
    } catch (error) {
      log.error("the certificate could not be read again; the last one stays in use", { error: String(error) });
    }
  });
  return server;
}

function header(req: http.IncomingMessage, name: string): string {
  const value = req.headers[name];
  return typeof value === "string" ? value : "";
}

async function read(req: http.IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of req.iterator({ destroyOnReturn: false })) {
    size += (part as Buffer).length;
    if (size > maxBody) throw new Refusal(413, { code: "DOCUMENT_TOO_LARGE", message: "the body is larger than 1 MiB" });
    parts.push(part as Buffer);
  }
  return Buffer.concat(parts);
}

/** refused turns an error into an answer. What the error states beyond the contract is only logged. */
function refused(error: unknown, log: Log): Answer {
  if (error instanceof Refusal) {
    if (error.status === 401) log.warn("request refused", { reason: String(error.cause) });
    return { status: error.status, body: { ...error.body, message: clip(error.body.message, maxMessage) } };
  }
  log.error("request failed", { error });
  return { status: 500, body: { code: "INTERNAL", message: "the adapter had an internal error", retryable: true } };
}
