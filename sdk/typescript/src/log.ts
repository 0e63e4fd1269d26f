// The structured log: one JSON object a line. Secrets that were registered are masked wherever they occur.

export const levels = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof levels)[number];
export type Fields = Record<string, unknown>;

const masked = "[hidden]";
const maxSecrets = 8192;
const tokens = /bearer +[A-Za-z0-9._~+/=-]{12,}|eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+/gi;
const secrets = new Set<string>();

/** hide registers a secret, which no later line of the log shows. */
export function hide(value: string): void {
  if (value.length < 6) return; // it would mask ordinary words
  secrets.delete(value);
  secrets.add(value);
  if (secrets.size > maxSecrets) secrets.delete(secrets.values().next().value ?? "");
}

/** mask returns a text without the registered secrets and without bearer tokens. */
export function mask(text: string): string {
  let clean = text.replace(tokens, masked);
  for (const secret of secrets) if (clean.includes(secret)) clean = clean.replaceAll(secret, masked);
  return clean;
}

/** Log is a log whose lines carry fields: log.bind({ operation: "op_1" }).info("running", { attempt: 2 }). */
export class Log {
  constructor(private readonly least: Level = "info", private readonly fields: Fields = {},
    private readonly write: (line: string) => void = (line) => process.stderr.write(line)) {}

  /** bind returns a log with more fields. */
  bind(fields: Fields): Log { return new Log(this.least, { ...this.fields, ...fields }, this.write); }

  debug(message: string, fields: Fields = {}): void { this.line("debug", message, fields); }
  info(message: string, fields: Fields = {}): void { this.line("info", message, fields); }
  warn(message: string, fields: Fields = {}): void { this.line("warn", message, fields); }
  error(message: string, fields: Fields = {}): void { this.line("error", message, fields); }

  private line(level: Level, message: string, fields: Fields): void {
    if (levels.indexOf(level) < levels.indexOf(this.least)) return;
    const line = { time: new Date().toISOString(), level, message, ...this.fields, ...fields };
    this.write(`${mask(JSON.stringify(line, plain))}\n`);
  }
}

/** plain writes an error with its stack and cause; JSON would drop both. */
function plain(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return typeof value === "bigint" ? String(value) : value;
  const cause = value.cause === undefined ? "" : `; caused by ${String(value.cause)}`;
  return `${value.stack ?? String(value)}${cause}`;
}
