// A stand-in for the platform's API, for developing the console without a server: it executes the real SDL of
// graph/schema with graphql-js over data in memory (dev/world.mjs, dev/roots.mjs), and serves dist/ with a content
// security policy. It checks no permission and keeps nothing; it is never part of a build.
//
//   npm run build && npm run standin          then open http://127.0.0.1:8090/login#code=dev
//   POST /dev/restart                         drops every connection and refuses new ones for three seconds
import { readFile, readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GraphQLError, buildSchema, execute, parse, validate } from 'graphql';
import { useServer } from 'graphql-ws/use/ws';
import { WebSocketServer } from 'ws';
import { endpointPage, isEndpoint } from './endpoints.mjs';
import { makeRoots } from './roots.mjs';
import { World } from './world.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, '..', 'dist');
const schemaDir = join(here, '..', '..', 'graph', 'schema');
const port = Number(process.env.PORT ?? 8090);
const policy =
  "default-src 'none'; script-src 'self'; worker-src 'self' blob:; style-src 'self' 'nonce-standin'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.ttf': 'font/ttf',
};
const maxBody = 1 << 20;

const files = (await readdir(schemaDir)).filter((name) => name.endsWith('.graphql')).sort();
const schema = buildSchema(
  (await Promise.all(files.map((name) => readFile(join(schemaDir, name), 'utf8')))).join('\n'),
);
const roots = makeRoots(
  new World(
    (code, message, reasons = []) =>
      new GraphQLError(message, {
        extensions: {
          code,
          correlation_id: `standin-${Math.random().toString(36).slice(2, 10)}`,
          retryable: false,
          reasons,
        },
      }),
  ),
);

/** Reads a body of at most maxBody bytes. */
async function bodyOf(request) {
  let text = '';
  for await (const chunk of request) {
    text += chunk;
    if (text.length > maxBody) throw new Error('too large');
  }
  return text;
}

const loggedIn = (request) => (request.headers.cookie ?? '').includes('gpuaas_session=dev');
const unauthenticated = {
  errors: [
    {
      message: 'no credential',
      extensions: { code: 'UNAUTHENTICATED', correlation_id: 'standin-0', retryable: false, reasons: [] },
    },
  ],
};

function send(response, status, body, headers = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
}

async function graphql(request, response) {
  if (!loggedIn(request)) return send(response, 401, unauthenticated);
  const { query, variables } = JSON.parse(await bodyOf(request));
  const document = parse(query);
  const errors = validate(schema, document);
  if (errors.length > 0) return send(response, 400, { errors });
  await new Promise((resolve) => setTimeout(resolve, 60)); // something like a network
  return send(
    response,
    200,
    await execute({ schema, document, variableValues: variables, rootValue: { ...roots.query, ...roots.mutation } }),
  );
}

async function login(request, response) {
  const { code } = JSON.parse(await bodyOf(request));
  if (code !== 'dev') return send(response, 401, unauthenticated);
  return send(response, 204, '', { 'set-cookie': 'gpuaas_session=dev; HttpOnly; SameSite=Strict; Path=/' });
}

const headersOf = (extension) => ({
  'content-type': types[extension] ?? 'application/octet-stream',
  'content-security-policy': policy,
});

async function file(request, response) {
  const path = normalize(new URL(request.url, 'http://x').pathname);
  const name = path === '/' || extname(path) === '' ? 'index.html' : path;
  try {
    const body = await readFile(join(dist, name));
    if (name === 'index.html')
      return send(response, 200, String(body).replaceAll('CSP_NONCE', 'standin'), headersOf('.html'));
    return send(response, 200, body, headersOf(extname(name)));
  } catch {
    return send(response, 404, 'not found');
  }
}

async function answer(request, response) {
  if (isEndpoint(request.headers.host))
    return send(response, 200, endpointPage, { 'content-type': 'text/html; charset=utf-8' });
  const path = new URL(request.url, 'http://x').pathname;
  if (request.method === 'POST' && path === '/graphql') return graphql(request, response);
  if (request.method === 'GET' && path === '/graphql') return file({ url: '/graphiql.html' }, response);
  if (request.method === 'POST' && path === '/auth/login') return login(request, response);
  if (request.method === 'POST' && path === '/auth/logout')
    return send(response, 204, '', { 'set-cookie': 'gpuaas_session=; Max-Age=0; Path=/' });
  if (request.method === 'POST' && path === '/dev/restart') return restart(response);
  return file(request, response);
}

let http;
let sockets;

function listen() {
  http = createServer((request, response) => {
    answer(request, response).catch((error) => send(response, 500, { errors: [{ message: String(error) }] }));
  });
  sockets = new WebSocketServer({ noServer: true });
  useServer(
    { schema, roots: { subscription: roots.subscription }, onConnect: ({ extra }) => loggedIn(extra.request) },
    sockets,
  );
  const terminals = new WebSocketServer({ noServer: true });
  http.on('upgrade', (request, socket, head) => {
    if (request.url === '/v1/exec') terminals.handleUpgrade(request, socket, head, playTerminal);
    else sockets.handleUpgrade(request, socket, head, (opened) => sockets.emit('connection', opened, request));
  });
  http.listen(port, '127.0.0.1', () => console.log(`stand-in of the API: http://127.0.0.1:${port}/login#code=dev`));
}

/** A shell that echoes what is typed, and ends with exit. */
function playTerminal(socket) {
  let line = '';
  const frame = (kind, text) => socket.send(Buffer.concat([Buffer.from([kind]), Buffer.from(text)]));
  socket.once('message', () => {
    socket.send('{"opened":true}');
    frame(3, '\x1b[32mroot@worker-0\x1b[0m:~# ');
    socket.on('message', (data) => {
      if (data[0] !== 0) return;
      const typed = data.subarray(1).toString();
      frame(3, typed.replace('\r', '\r\n'));
      line += typed;
      if (!typed.includes('\r')) return;
      if (line.startsWith('exit')) frame(5, '\0\0\0\0');
      else frame(3, `\x1b[38;2;255;120;0m${line.trim()}\x1b[0m: not found\r\n\x1b[32mroot@worker-0\x1b[0m:~# `);
      line = '';
    });
  });
}

function restart(response) {
  send(response, 202, {});
  for (const socket of sockets.clients) socket.terminate();
  http.close(() => undefined);
  http.closeAllConnections();
  setTimeout(listen, 3_000);
}

listen();
