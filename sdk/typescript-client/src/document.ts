// An operation's text, with the types of its data and variables.

/** Document is anything that prints as the text of an operation. */
export interface Document<Data, Variables> {
  toString(): string;
  /** __apiType carries the types; it does not exist at run time. */
  readonly __apiType?: ((variables: Variables) => Data) | undefined;
}

/** TypedDocument is a generated operation. */
export class TypedDocument<Data, Variables> implements Document<Data, Variables> {
  declare readonly __apiType?: (variables: Variables) => Data;

  constructor(private readonly text: string) {}

  toString(): string { return this.text; }
}
