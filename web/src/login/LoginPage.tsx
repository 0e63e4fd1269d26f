// The login: a login link carries its one-time code in the fragment, which browsers do not send; or it is pasted.
import { Button, TextInput } from '@mantine/core';
import { useCallback, useEffect, useState } from 'react';
import type { SyntheticEvent } from 'react';
import { login } from '../api/client';
import { plain } from '../api/errors';
import type { Problem } from '../api/errors';
import { codeFrom, providerAddress, safeNext } from './codes';
import { Notice, ProblemNotice } from '../ui/Problem';
import { loginArt } from '../ui/first';
import { useMethods } from './useMethods';

/** The texts for why the page is shown. */
const words: Readonly<Record<string, string>> = {
  expired: 'Your session has ended. Log in again to continue where you were.',
  out: 'You are logged out.',
  unsure: 'The platform could not be reached, so your session may still be open. Log out again once it is back.',
};

/** The login page. */
export function LoginPage({
  reason,
  next,
  refused,
}: {
  reason: string | undefined;
  next: string | undefined;
  refused: Problem | undefined;
}) {
  const [pasted, setPasted] = useState('');
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const methods = useMethods();
  const redeem = useCallback(
    async (code: string) => {
      setBusy(true);
      const failed = await login(code);
      if (failed === undefined)
        location.assign(safeNext(next)); // a full load: the new session starts without old state
      else {
        setProblem(failed);
        setBusy(false);
      }
    },
    [next],
  );
  useCodeOfFragment(redeem);
  useEffect(() => {
    document.title = 'Log in · GPUaaS';
  }, []);

  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const code = codeFrom(pasted);
    if (code === '') setProblem(plain('INVALID_ARGUMENT', 'This is neither a login code nor a login link.', ''));
    else void redeem(code);
  };
  const word = words[reason ?? ''];
  return (
    <div className="login">
      <section className="login-art" dangerouslySetInnerHTML={{ __html: loginArt }} />
      <main className="login-form">
        <form onSubmit={submit}>
          <div>
            <h2 style={{ fontSize: 20 }}>Log in</h2>
            <p className="soft" style={{ marginTop: 4 }}>
              {methods.link
                ? 'Open your login link, or paste it here. Each link works once.'
                : 'You are sent to your organisation’s login and back.'}
            </p>
          </div>
          {word !== undefined && problem === undefined && (
            <Notice tone="idle" icon="info" role="status">
              {word}
            </Notice>
          )}
          {problem !== undefined && <ProblemNotice problem={problem} />}
          {refused !== undefined && problem === undefined && <ProblemNotice problem={refused} />}
          {methods.oidc !== undefined && (
            <Button component="a" size="md" href={providerAddress(next)} variant={methods.link ? 'default' : 'filled'}>
              Log in with {methods.oidc}
            </Button>
          )}
          {methods.link && (
            <>
              <TextInput
                label="Login code or link"
                size="md"
                autoFocus
                autoComplete="one-time-code"
                spellCheck={false}
                maxLength={2048}
                value={pasted}
                onChange={(event) => setPasted(event.currentTarget.value)}
                disabled={busy}
              />
              <Button type="submit" size="md" loading={busy} disabled={pasted.trim() === ''}>
                Log in
              </Button>
            </>
          )}
        </form>
      </main>
    </div>
  );
}

/**
 * Removes the code from the address immediately, so that it does not stay in the history, and redeems it once. A link
 * that is opened while this page is shown only changes the fragment.
 */
function useCodeOfFragment(redeem: (code: string) => Promise<void>): void {
  useEffect(() => {
    const take = () => {
      if (!location.hash.includes('code=')) return;
      const code = codeFrom(location.hash);
      history.replaceState(null, '', location.pathname + location.search);
      void redeem(code);
    };
    take();
    window.addEventListener('hashchange', take);
    return () => window.removeEventListener('hashchange', take);
  }, [redeem]);
}
