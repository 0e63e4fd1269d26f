// Proves the order of the folders: every import (types included) and every spread of a GraphQL fragment stays in its
// folder or leads to a lower floor, and there is no circle between files or between folders.
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { floors } from './floors';

/** The files that each file uses; paths are relative to src. */
type Arrows = ReadonlyMap<string, readonly string[]>;

const src = import.meta.dirname;

/** Returns the relative modules that a source imports: values, types, re-exports, `import(…)`, `import('…').T`. */
function importsOf(name: string, text: string): string[] {
  const kind = name.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const module = moduleOf(node);
    if (module?.startsWith('.') === true) found.push(module);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(name, text, ts.ScriptTarget.Latest, false, kind));
  return found;
}

function moduleOf(node: ts.Node): string | undefined {
  let module: ts.Node | undefined;
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) module = node.moduleSpecifier;
  else if (ts.isImportTypeNode(node)) module = ts.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined;
  else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) [module] = node.arguments;
  return module !== undefined && ts.isStringLiteralLike(module) ? module.text : undefined;
}

/** Returns the arrows of source files, given as text by name. Throws for an import that leads to no file. */
function arrowsOf(files: ReadonlyMap<string, string>): Arrows {
  const fragments = new Map<string, string>();
  for (const [name, text] of files) {
    if (!name.endsWith('.graphql')) continue;
    for (const [, fragment] of text.matchAll(/^fragment (\w+)/gm)) fragments.set(fragment ?? '', name);
  }
  const spreads = (text: string) => [...text.matchAll(/\.\.\.(\w+)/g)].map(([, spread]) => spread ?? '');
  return new Map(
    [...files].map(([name, text]) => {
      const to = name.endsWith('.graphql')
        ? spreads(text).map((spread) => fragments.get(spread) ?? `no fragment ${spread}`)
        : importsOf(name, text).map((module) => fileOf(name, module, files));
      return [name, [...new Set(to)].filter((each) => each !== name)];
    }),
  );
}

function fileOf(from: string, module: string, files: ReadonlyMap<string, string>): string {
  const path = normalize(join(dirname(from), module));
  const found = [path, `${path}.ts`, `${path}.tsx`].find((each) => files.has(each));
  if (found === undefined) throw new Error(`${from} imports ${module}, which is not a file of src`);
  return found;
}

/** Returns the folder of a file: the first part of its path, or '.'. */
function folderOf(file: string): string {
  return file.includes('/') ? file.slice(0, file.indexOf('/')) : '.';
}

/** Returns the arrows between folders that do not lead to a lower floor, each as `from -> to`. */
function climbing(arrows: Arrows): string[] {
  const height = new Map(floors.flatMap((floor, at) => floor.map((folder) => [folder, at] as const)));
  // NaN compares as false: an unknown folder is refused.
  const of = (file: string) => height.get(folderOf(file)) ?? Number.NaN;
  return [...arrows].flatMap(([from, to]) =>
    to
      .filter((each) => folderOf(from) !== folderOf(each) && !(of(each) < of(from)))
      .map((each) => `${from} -> ${each}`),
  );
}

/** Returns the nodes of the first circle found, in order; empty when there is none. */
function circle(arrows: Arrows): string[] {
  const done = new Set<string>();
  const walk = (node: string, path: readonly string[]): string[] => {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node];
    if (done.has(node)) return [];
    for (const next of arrows.get(node) ?? []) {
      const found = walk(next, [...path, node]);
      if (found.length > 0) return found;
    }
    done.add(node);
    return [];
  };
  for (const node of arrows.keys()) {
    const found = walk(node, []);
    if (found.length > 0) return found;
  }
  return [];
}

/** Returns the arrows between folders that follow from those between files. */
function folderArrows(arrows: Arrows): Arrows {
  const folders = new Map<string, string[]>();
  for (const [from, to] of arrows) {
    const others = to.map(folderOf).filter((each) => each !== folderOf(from));
    folders.set(folderOf(from), [...new Set([...(folders.get(folderOf(from)) ?? []), ...others])]);
  }
  return folders;
}

const all = readdirSync(src, { recursive: true, encoding: 'utf8' });
const names = all.filter((name) => /\.(tsx?|css|graphql)$/.test(name));
const files = new Map(names.map((name) => [name, readFileSync(join(src, name), 'utf8')]));

describe('the folders of src', () => {
  const arrows = arrowsOf(files);

  it('are each on one floor', () => {
    expect(floors.flat().sort()).toEqual([...new Set(names.map(folderOf))].sort());
  });

  it('import downwards only', () => expect(climbing(arrows)).toEqual([]));

  it('form no circle, and neither do their files', () => {
    expect(circle(arrows)).toEqual([]);
    expect(circle(folderArrows(arrows))).toEqual([]);
  });
});

describe('the proof itself', () => {
  const given = (...sources: [string, string][]) => arrowsOf(new Map(sources));
  const climbs = (...sources: [string, string][]) => climbing(given(...sources));

  it.each([
    ["import { a } from './b';"],
    ["import type { A } from './b';"],
    ["import './b';"],
    ["export * from './b';"],
    ["export type { A } from './b';"],
    ["const b = lazy(() => import('./b'));"],
    ["type A = import('./b').A;"],
    ["const text = <p>it's</p>;\nconst b = import('./b');"],
  ])('sees the import in %j', (text) => expect(importsOf('a.tsx', text)).toEqual(['./b']));

  it('sees an arrow up, one to a folder of the same floor, and one of a fragment', () => {
    expect(climbs(['ui/a.ts', "import type { B } from '../changes/b';"], ['changes/b.ts', ''])).toEqual([
      'ui/a.ts -> changes/b.ts',
    ]);
    expect(climbs(['nodes/a.ts', "import '../orphans/b';"], ['orphans/b.ts', ''])).toEqual([
      'nodes/a.ts -> orphans/b.ts',
    ]);
    expect(climbs(['api/a.graphql', '...B'], ['ui/b.graphql', 'fragment B on C'])).toEqual([
      'api/a.graphql -> ui/b.graphql',
    ]);
    expect(climbs(['ui/a.ts', "import '../lib/b';"], ['lib/b.ts', ''])).toEqual([]);
  });

  it('refuses a folder on no floor and a module that is not there', () => {
    expect(climbs(['new/a.ts', "import '../lib/b';"], ['lib/b.ts', ''])).toEqual(['new/a.ts -> lib/b.ts']);
    expect(() => given(['lib/a.ts', "import './b';"])).toThrow('lib/a.ts imports ./b');
  });

  it('sees circles of files in one folder, also of types alone, and circles of folders whose files form none', () => {
    const types = given(['lib/a.ts', "import type { B } from './b';"], ['lib/b.ts', "import type { A } from './a';"]);
    expect(circle(types)).toEqual(['lib/a.ts', 'lib/b.ts', 'lib/a.ts']);
    const folders = given(
      ['lib/a.ts', "import '../api/a';"],
      ['api/a.ts', ''],
      ['api/b.ts', "import '../lib/b';"],
      ['lib/b.ts', ''],
    );
    expect(circle(folders)).toEqual([]);
    expect(circle(folderArrows(folders))).toEqual(['lib', 'api', 'lib']);
  });
});
