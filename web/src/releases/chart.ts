// A canary's chart: the share of failed launches of both versions, over the launches.

/** A point as the platform reports it. */
export interface Point {
  readonly canaryLaunches: number;
  readonly canaryFailed: number;
  readonly activeLaunches: number;
  readonly activeFailed: number;
  readonly evidence: number;
}

/** Lines in a box, as the points of an SVG polyline; empty before the first launch of a version. */
export interface Lines {
  readonly canary: string;
  readonly active: string;
  /** The evidence against the canary, with the threshold as the top of the box. */
  readonly evidence: string;
}

/** Draws the points from left to right; shares from 0 at the bottom to 1 at the top. */
export function linesOf(points: readonly Point[], threshold: number, width: number, height: number): Lines {
  const x = (at: number) => (points.length < 2 ? width : (at / (points.length - 1)) * width);
  const line = (share: (point: Point) => number | undefined) =>
    points
      .map((point, at) => [x(at), share(point)] as const)
      .flatMap(([left, value]) =>
        value === undefined
          ? []
          : [`${left.toFixed(1)},${(height - Math.min(1, Math.max(0, value)) * height).toFixed(1)}`],
      )
      .join(' ');
  return {
    canary: line((point) => rate(point.canaryFailed, point.canaryLaunches)),
    active: line((point) => rate(point.activeFailed, point.activeLaunches)),
    evidence: line((point) => (threshold > 0 ? point.evidence / threshold : 0)),
  };
}

/** The share of failed launches; undefined before the first. */
export function rate(failed: number, launches: number): number | undefined {
  return launches === 0 ? undefined : failed / launches;
}

/** A share in percent for people; a dash when there is none. */
export function percentOf(share: number | null | undefined): string {
  if (share === null || share === undefined) return '—';
  const percent = share * 100;
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}
