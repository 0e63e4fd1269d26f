// The login methods of this platform.
import { useEffect, useState } from 'react';

/** Whether login links work, and the identity provider's name when there is one. */
export interface Methods {
  readonly link: boolean;
  readonly oidc: string | undefined;
}

/** The methods until the platform has answered, and when it cannot: by link, which needs no identity provider. */
const unknown: Methods = { link: true, oidc: undefined };

/** Reads the login methods once. */
export function useMethods(): Methods {
  const [methods, setMethods] = useState(unknown);
  useEffect(() => {
    let over = false;
    void read().then((found) => {
      if (!over) setMethods(found);
    });
    return () => {
      over = true;
    };
  }, []);
  return methods;
}

async function read(): Promise<Methods> {
  try {
    const answer = await fetch('/auth/methods', { credentials: 'same-origin' });
    if (!answer.ok) return unknown;
    const found = (await answer.json()) as { link?: boolean; oidc?: { name?: string } | null };
    return { link: found.link !== false, oidc: found.oidc?.name };
  } catch {
    return unknown;
  }
}
