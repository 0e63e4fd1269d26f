// Pages in chunks of their own: the console's first load has the frame, and a page's code is loaded when it is opened.
import { LazyRoute } from '@tanstack/react-router';
import type { AnyRoute, RouteComponent } from '@tanstack/react-router';

/** A page could not be loaded: the server is out of reach, or has another version of the console than this tab. */
export class NotLoaded extends Error {
  override readonly name = 'NotLoaded';
}

/** Returns what a route draws, found by `pick` in its chunk. After a failure the router requests the chunk again. */
export async function page<Module>(
  chunk: Promise<Module>,
  pick: (module: Module) => RouteComponent,
): Promise<LazyRoute<AnyRoute>> {
  const module = await chunk.catch((cause: unknown) => {
    throw new NotLoaded(cause instanceof Error ? cause.message : String(cause), { cause });
  });
  return new LazyRoute({ id: '', component: pick(module) }); // the router reads no id here
}
