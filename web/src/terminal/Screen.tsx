// The screen of a terminal, in a chunk of its own: its library is loaded when the first terminal is opened.
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { useEffect, useRef } from 'react';
import { connect } from './connection';
import type { End, Opening } from './connection';
import { styled, whileStyled } from './document';

/** Lines that can be scrolled back to. */
const scrollback = 5_000;

/** The screen. It connects once, when it is first visible; another opening needs another `key`. */
export default function Screen({
  opening,
  label,
  onOpen,
  onEnd,
}: {
  opening: Opening;
  label: string;
  onOpen: () => void;
  onEnd: (end: End) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const first = useRef({ opening, onOpen, onEnd });
  useEffect(() => {
    const parent = box.current;
    if (parent === null) return undefined;
    const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';
    const terminal = new Terminal({
      documentOverride: styled(document, nonce),
      fontFamily: getComputedStyle(parent).fontFamily,
      fontSize: 13,
      scrollback,
      cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
      screenReaderMode: true,
      theme: { background: '#10181a', foreground: '#e6eeec', cursor: '#7fd1ae' },
    });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.attachCustomKeyEventHandler((event) => !(event.key === 'Tab' && event.shiftKey)); // the way out by keyboard
    whileStyled(document, nonce, () => terminal.open(parent));
    fit.fit();
    const connection = connect(
      { ...first.current.opening, rows: terminal.rows, cols: terminal.cols },
      {
        onOpen: () => {
          first.current.onOpen();
          terminal.focus();
        },
        onOutput: (bytes, drawn) => terminal.write(bytes, drawn),
        onEnd: (end) => {
          terminal.options.disableStdin = true;
          first.current.onEnd(end);
        },
      },
    );
    terminal.onData(connection.type);
    terminal.onResize(({ rows, cols }) => connection.resize(rows, cols));
    const sized = new ResizeObserver(() => {
      if (parent.clientWidth > 0) fit.fit(); // a tab that is not shown has no size
    });
    sized.observe(parent);
    return () => {
      sized.disconnect();
      connection.close();
      terminal.dispose();
    };
  }, []);
  return <div ref={box} className="terminal-screen mono" role="group" aria-label={label} />;
}
