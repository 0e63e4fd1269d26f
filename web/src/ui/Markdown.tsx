// Documentation of an app's publisher: Markdown without raw HTML, with links that open in a new tab and no images of
// other origins (the content security policy would refuse them).
import ReactMarkdown from 'react-markdown';
import remarkGfm from 'remark-gfm';

/** Markdown as page content. Its headings start below the page's own. */
export function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        components={{
          a: ({ href, children }) => (
            <a href={href} target="_blank" rel="noreferrer noopener">
              {children}
            </a>
          ),
          img: ({ alt }) => <em>[{alt}]</em>,
          // A box that scrolls must be reachable with the keyboard.
          pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
          h1: ({ children }) => <h2>{children}</h2>,
          h2: ({ children }) => <h2>{children}</h2>,
        }}
      >
        {text}
      </ReactMarkdown>
    </div>
  );
}
