// The page as the terminal's library may use it. The content security policy accepts only style elements with the
// page's nonce, and no style attributes that are written as text; the library writes both.

/** Returns the document, whose new elements have styles that the policy accepts. */
export function styled(page: Document, nonce: string): Document {
  const create = createWith(page, nonce);
  return new Proxy(page, {
    get: (target, key) => {
      if (key === 'createElement') return create;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** Runs something that creates elements of the page itself. */
export function whileStyled(page: Document, nonce: string, run: () => void): void {
  Reflect.set(page, 'createElement', createWith(page, nonce));
  try {
    run();
  } finally {
    Reflect.deleteProperty(page, 'createElement'); // the prototype has the original
  }
}

function createWith(page: Document, nonce: string): (name: string) => HTMLElement {
  const original: (this: Document, name: string) => HTMLElement = Reflect.get(page, 'createElement');
  return (name) => {
    const element = original.call(page, name);
    if (element instanceof HTMLStyleElement) element.nonce = nonce;
    const setAttribute = element.setAttribute.bind(element);
    element.setAttribute = (key: string, value: string) => {
      if (key === 'style') element.style.cssText = value;
      else setAttribute(key, value);
    };
    return element;
  };
}
