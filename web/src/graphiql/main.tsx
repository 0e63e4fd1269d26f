// The GraphiQL page that the server shows at /graphql in development. Everything comes from the console's own
// build: nothing is loaded from another origin.
import { createGraphiQLFetcher } from '@graphiql/toolkit';
import { GraphiQL } from 'graphiql';
import 'graphiql/setup-workers/vite';
import 'graphiql/style.css';
import { createClient } from 'graphql-ws';
import { createRoot } from 'react-dom/client';
import './graphiql.css';

const fetcher = createGraphiQLFetcher({
  url: '/graphql',
  wsClient: createClient({
    url: `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/graphql`,
    lazy: true,
  }),
});

const welcome = `# The public API of the platform. Log in to the console first, or put a key into the headers below:
#   { "Authorization": "Bearer gpu_sa_…" }

query Whoami {
  viewer {
    actor { kind name id }
    projects { edges { node { id displayName } } }
  }
}
`;

const container = document.getElementById('graphiql');
if (container !== null)
  createRoot(container).render(<GraphiQL fetcher={fetcher} defaultQuery={welcome} defaultEditorToolsVisibility />);
