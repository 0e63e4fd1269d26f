// @vitest-environment happy-dom
import { expect, it } from 'vitest';
import { styled, whileStyled } from './document';

it('gives style elements the nonce, and sets styles where the policy takes them', () => {
  const page = styled(document, 'n0nce');
  expect(page.createElement('style').nonce).toBe('n0nce');
  const span = page.createElement('span');
  Object.defineProperty(span, 'style', { value: { cssText: '' } }); // this environment's own sets the attribute again
  span.setAttribute('style', 'color: red;');
  span.setAttribute('title', 'x');
  expect([span.style.cssText, span.hasAttribute('style'), span.title]).toEqual(['color: red;', false, 'x']);
  expect(page.createDocumentFragment().childNodes).toHaveLength(0);
});

it('leaves the page as it was', () => {
  whileStyled(document, 'n0nce', () => expect(document.createElement('style').nonce).toBe('n0nce'));
  expect(document.createElement('style').nonce).not.toBe('n0nce');
});
