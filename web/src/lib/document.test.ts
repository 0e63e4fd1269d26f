import { describe, expect, it } from 'vitest';
import { parseDocument } from './document';

describe('a policy document as text', () => {
  it('is one JSON object', () => {
    expect(parseDocument('{"regions": {"allow": ["eu"]}}')).toEqual({
      document: { regions: { allow: ['eu'] } },
      wrong: undefined,
    });
    expect(parseDocument('')).toEqual({ document: {}, wrong: undefined });
  });

  it('is refused with a word when it is something else', () => {
    for (const text of ['[]', 'null', '1', '"x"']) expect(parseDocument(text).wrong).toMatch(/object/);
    expect(parseDocument('{').wrong).toMatch(/not JSON/);
  });
});
