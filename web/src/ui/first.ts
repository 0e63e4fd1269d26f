// The first drawing, as HTML: what every viewer sees of a page before the console's own code is loaded and has read the
// session. The page then replaces it, at the same positions. This file imports nothing of that code.
import { pageClass, placeAt, placesFor } from '../lib/places';

const logo = '<img src="/icon.svg" alt="" />';
/** Takes the space of an icon of the navigation. */
const icon = '<svg width="17" height="17" aria-hidden="true"></svg>';
/** Takes the space of a menu's button. */
const menu = '<div class="switcher" aria-hidden="true"><span><b>&nbsp;</b><small>&nbsp;</small></span></div>';

/** The side of the login page that states the console's purpose. */
export const loginArt =
  `<div class="brand">${logo}<span>GPUaaS<small>App Platform</small></span></div>` +
  '<div><h1>Clusters on the GPUs you rent.</h1><p>Launch an app from the catalog, watch it start live, operate it, and ' +
  `release it with proof that nothing is left.</p></div>${racks()}`;

/** Returns racks of cells, some of them lit. */
function racks(): string {
  const cells = Array.from({ length: 64 }, (_, at) => {
    const lit = (at * 7 + (at >> 3) * 5) % 11 < 4;
    return (
      `<rect x="${(at % 8) * 26}" y="${(at >> 3) * 26}" width="20" height="20" rx="5" ` +
      `fill="${lit ? '#7fd1b9' : '#1d4643'}" opacity="${lit ? 0.75 : 1}"/>`
    );
  });
  return `<svg class="login-grid" viewBox="0 0 208 208" aria-hidden="true">${cells.join('')}</svg>`;
}

/** Replaces the lines when the console's own code does not load. */
export const notLoaded =
  '<div class="empty" role="alert"><h2>The console could not be loaded</h2><p>It may have a new version, or its server ' +
  'cannot be reached.</p><a href="">Load the page again</a></div>';

/** Returns the first drawing of the page at a path. It shows no text of the address: an unknown path has no head. */
export function firstDrawing(path: string): string {
  return path.toLowerCase().replace(/\/$/, '') === '/login'
    ? `<div class="login"><section class="login-art">${loginArt}</section><section class="login-form">${waiting(0)}</section></div>`
    : frame(path);
}

/** Returns the frame with the head of the page at a path. */
function frame(path: string): string {
  const here = placeAt(path);
  const link = ({ path: to, title }: { path: string; title: string }) => {
    const chosen = to === here?.path || path.startsWith(`${to}/`);
    return `<a href="${to}"${chosen ? ' data-status="active" aria-current="page"' : ''}>${icon}${title}</a>`;
  };
  const nav = placesFor(() => false).map((each) => `<h2>${each.group}</h2>${each.places.map(link).join('')}`);
  const head =
    here === undefined
      ? ''
      : `<header class="page-head"><div class="row grow"><div class="grow"><h1>${here.title}</h1>` +
        `<div class="lede">${here.lede}</div></div></div></header>`;
  return (
    `<div class="shell"><header class="top"><i></i><a href="/workloads" class="brand">${logo}GPUaaS</a></header>` +
    `<aside class="side fixed"><a href="/workloads" class="brand">${logo}<span>GPUaaS<small>App Platform</small></span></a>` +
    `${menu}<nav class="nav" aria-label="Main">${nav.join('')}</nav><div class="side-foot">${menu}</div></aside>` +
    `<main class="main"><div class="${pageClass(here)}">${head}` +
    `<div class="card">${waiting(6)}</div></div></main></div>`
  );
}

/** Returns placeholder lines for data that is still read; ui's Loading draws the same. */
function waiting(lines: number): string {
  return `<div class="card-body stack-s waiting" role="status" aria-label="Loading">${'<i></i>'.repeat(lines)}</div>`;
}
