// JSON Schema 2020-12, so that the check is exactly what the manifest describes.
import { Validator, type Schema as Described } from "@cfworker/json-schema";

export type Schema = object | null | undefined;

/** Fault is the first place where a value breaks its schema. */
export interface Fault { path: string; message: string }

export type Check = (value: unknown, path: string) => Fault | undefined;

/** compile returns the check of a schema. Without one only an empty object is valid. */
export function compile(schema: Schema): Check {
  const validator = new Validator((schema ?? { type: "object", maxProperties: 0 }) as Described, "2020-12", false);
  return (value, path) => {
    const { valid, errors } = validator.validate(value);
    if (valid) return undefined;
    // A parent only repeats that something below it is wrong: the deepest place states what.
    const depth = (at: string): number => at.split("/").length;
    const worst = errors.reduce((a, b) => (depth(b.instanceLocation) > depth(a.instanceLocation) ? b : a), errors[0]!);
    return { path: path + dotted(worst.instanceLocation, value), message: worst.error };
  };
}

/** dotted writes the pointer "#/a/0" as ".a[0]". */
function dotted(pointer: string, value: unknown): string {
  let at = "";
  for (const part of pointer.split("/").slice(1)) {
    const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    at += Array.isArray(value) ? `[${name}]` : `.${name}`;
    value = (value as Record<string, unknown> | null | undefined)?.[name];
  }
  return at;
}
