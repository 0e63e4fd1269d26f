import { MantineProvider, localStorageColorSchemeManager } from '@mantine/core';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Provider } from 'urql';
import { WhyButton } from './access/WhyButton';
import { client } from './api/client';
import { SessionDocument } from './generated/graphql';
import type { Problem } from './api/errors';
import { TriageLink } from './operations/TriageLink';
import { router } from './router';
import './styles/mantine.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/parts.css';
import './styles/workload.css';
import './styles/changes.css';
import './styles/releases.css';
import { theme } from './theme';
import { ProblemExtra } from './ui/Problem';

const schemes = localStorageColorSchemeManager({ key: 'gpuaas-color-scheme' }); // the key that public/theme.js reads

// The server's content security policy accepts style elements only with the nonce of this response. The library that
// locks scrolling behind a dialog reads the nonce from the name that webpack uses.
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';
Object.assign(globalThis, { __webpack_nonce__: nonce });

const explain = (problem: Problem) => (
  <>
    <WhyButton problem={problem} />
    <TriageLink problem={problem} />
  </>
);

// What the frame waits for is requested before anything is drawn: the session, and the page's own code. A later reader
// shares the request.
if (location.pathname !== '/login') {
  void client.query(SessionDocument, {}).toPromise();
  void router.preloadRoute({ to: location.pathname });
}

const container = document.getElementById('root');
if (container !== null) {
  createRoot(container).render(
    <StrictMode>
      <MantineProvider theme={theme} colorSchemeManager={schemes} defaultColorScheme="auto" getStyleNonce={() => nonce}>
        <Provider value={client}>
          <ProblemExtra value={explain}>
            <RouterProvider router={router} />
          </ProblemExtra>
        </Provider>
      </MantineProvider>
    </StrictMode>,
  );
}
