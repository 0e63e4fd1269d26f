// Shows the first drawing until the console has drawn its page. A script of its own, which index.html runs first.
import { firstDrawing } from './ui/first';

const container = document.getElementById('root');
if (container !== null) {
  const first = document.createElement('div');
  first.id = 'first';
  first.innerHTML = firstDrawing(location.pathname);
  container.before(first);
  // An observer runs before the browser paints, so that the two are never seen together.
  const drawn = new MutationObserver(() => {
    if (container.querySelector('main') === null) return;
    first.remove();
    drawn.disconnect();
  });
  drawn.observe(container, { childList: true, subtree: true });
}
