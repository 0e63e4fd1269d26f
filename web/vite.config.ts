import { resolve } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';
import type { Plugin } from 'vite';

// GPUAAS_API is where the development server finds the API: the stand-in of dev/ or a real server.
const api = process.env['GPUAAS_API'] ?? 'http://127.0.0.1:8090';

/** Names the built first drawing in index.html, where Vite would make one script of it and the console's own code. */
const firstDrawing: Plugin = {
  name: 'first-drawing',
  apply: 'build',
  transformIndexHtml: {
    order: 'post',
    handler: (html, { bundle }) => {
      const chunk = Object.values(bundle ?? {}).find(
        (each) => each.type === 'chunk' && each.isEntry && each.name === 'first',
      );
      if (chunk?.type !== 'chunk') throw new Error('the first drawing was not built');
      return html.replace('/src/first.ts', `/${chunk.fileName}`);
    },
  },
};

export default defineConfig({
  plugins: [react(), firstDrawing],
  // The platform's own client, from its sources: there is no registry to take it from.
  resolve: { alias: { '@gpuaas/client': resolve(import.meta.dirname, '../sdk/typescript-client/src/index.ts') } },
  build: {
    // No inlined assets and no source maps: the console's content security policy allows no data: scripts, and
    // what is built here is embedded into the server's binary.
    assetsInlineLimit: 0,
    sourcemap: false,
    manifest: '.manifest.json', // what each page loads, for firstload_test.go; files with a dot are not served
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 8192,
    rollupOptions: {
      // GraphiQL's parts carry a directive for a compiler that this build does not use.
      onwarn: (warning, warn) => {
        if (warning.code !== 'MODULE_LEVEL_DIRECTIVE') warn(warning);
      },
      input: {
        index: resolve(import.meta.dirname, 'index.html'),
        first: resolve(import.meta.dirname, 'src/first.ts'),
        graphiql: resolve(import.meta.dirname, 'graphiql.html'),
      },
    },
  },
  worker: { format: 'es' },
  server: {
    proxy: { '/graphql': { target: api, ws: true }, '/auth': { target: api }, '/v1': { target: api, ws: true } },
  },
  test: {
    environment: 'node',
    testTimeout: 120_000, // of what hangs; a busy machine is no reason to fail
    server: { deps: { inline: ['graphql', 'graphql-ws'] } }, // else the tests' server gets a second copy of graphql
    // Tests of pages stand in for modules, and so have each file's to themselves; the others share what they load.
    projects: [
      { extends: true, test: { name: 'logic', include: ['src/**/*.test.ts'], isolate: false } },
      { extends: true, test: { name: 'pages', include: ['src/**/*.test.tsx'] } },
    ],
  },
});
