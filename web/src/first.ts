// Shows the first drawing until the console has drawn its page. A script of its own, which index.html runs first.
import { firstDrawing, notLoaded } from './ui/first';

const container = document.getElementById('root');
if (container !== null) {
  const first = document.createElement('div');
  first.id = 'first';
  first.innerHTML = firstDrawing(location.pathname);
  container.before(first);
  const fails = ({ target }: Event) => {
    if (target instanceof Element && !(target instanceof HTMLScriptElement)) return; // a picture may be missing
    first.querySelectorAll('.waiting').forEach((lines) => (lines.outerHTML = notLoaded));
  };
  addEventListener('error', fails, true); // of a script that does not load, or stops before it has drawn
  // An observer runs before the browser paints, so that the two are never visible together.
  const drawn = new MutationObserver(() => {
    if (container.querySelector('main') === null) return;
    first.remove();
    drawn.disconnect();
    removeEventListener('error', fails, true);
  });
  drawn.observe(container, { childList: true, subtree: true });
}
