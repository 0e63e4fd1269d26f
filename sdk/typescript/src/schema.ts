// As much of JSON Schema as this adapter describes its config and inputs with, so that what is described is what is
// checked: type, properties, required, additionalProperties, minimum, maximum, minLength, maxLength, pattern, enum.
export interface Schema {
  type: "object" | "string" | "integer" | "array"; description?: string; title?: string; default?: unknown;
  properties?: Record<string, Schema>; required?: string[]; additionalProperties?: boolean; items?: Schema;
  minimum?: number; maximum?: number; minLength?: number; maxLength?: number; pattern?: string; enum?: unknown[];
}

export interface Fault { path: string; message: string }

/** fault finds the first thing in which a value breaks its schema; undefined when it is valid. */
export function fault(schema: Schema, value: unknown, path: string): Fault | undefined {
  if (schema.enum !== undefined && !schema.enum.includes(value)) return { path, message: `must be one of ${schema.enum.join(", ")}` };
  switch (schema.type) {
    case "object": return objectFault(schema, value, path);
    case "array": return arrayFault(schema, value, path);
    case "string": return stringFault(schema, value, path);
    case "integer": return integerFault(schema, value, path);
  }
}

function objectFault(schema: Schema, value: unknown, path: string): Fault | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { path, message: "must be an object" };
  const fields = value as Record<string, unknown>;
  const missing = (schema.required ?? []).find((name) => !(name in fields));
  if (missing !== undefined) return { path: `${path}.${missing}`, message: "is missing" };
  for (const [name, field] of Object.entries(fields)) {
    const known = Object.hasOwn(schema.properties ?? {}, name) ? schema.properties?.[name] : undefined;
    if (known === undefined && schema.additionalProperties === false) return { path: `${path}.${name}`, message: "is not known" };
    const found = known === undefined ? undefined : fault(known, field, `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function arrayFault(schema: Schema, value: unknown, path: string): Fault | undefined {
  if (!Array.isArray(value)) return { path, message: "must be a list" };
  const { items } = schema;
  if (items === undefined) return undefined;
  return value.map((item, n) => fault(items, item, `${path}[${n}]`)).find((found) => found !== undefined);
}

function stringFault(schema: Schema, value: unknown, path: string): Fault | undefined {
  if (typeof value !== "string") return { path, message: "must be a text" };
  const length = [...value].length;
  if (length < (schema.minLength ?? 0)) return { path, message: `must have at least ${schema.minLength} characters` };
  if (length > (schema.maxLength ?? Infinity)) return { path, message: `must have at most ${schema.maxLength} characters` };
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, "u").test(value)) return { path, message: `must match ${schema.pattern}` };
  return undefined;
}

function integerFault(schema: Schema, value: unknown, path: string): Fault | undefined {
  if (typeof value !== "number" || !Number.isInteger(value)) return { path, message: "must be an integer" };
  if (value < (schema.minimum ?? -Infinity) || value > (schema.maximum ?? Infinity)) return { path, message: `must be ${schema.minimum} to ${schema.maximum}` };
  return undefined;
}
