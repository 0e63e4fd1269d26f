// The logs that the page shows: lines as text, and a bounded list of them.
import type { LogLineBitsFragment } from '../generated/graphql';

/** A line, a part of one, or a gap. */
export type LogLine = LogLineBitsFragment;

/** The most lines that the page keeps; the oldest are dropped first. */
export const maxShown = 2000;

/** Returns the lines with more appended, within the bound. */
export function grow(lines: readonly LogLine[], more: readonly LogLine[]): readonly LogLine[] {
  return [...lines, ...more].slice(-maxShown);
}

/** Returns the text in place of lines that are no longer kept. */
export function gapText(gap: NonNullable<LogLine['gap']>): string {
  if (gap.restarted || gap.lines === null) return 'The node restarted: lines may be lost.';
  return gap.lines === 1 ? 'A line is not kept any more.' : `${gap.lines} lines are not kept any more.`;
}

/** Returns the lines as the text of a file; the parts of a long line are joined. */
export function textOf(lines: readonly LogLine[]): string {
  const open = new Set<string>(); // processes' streams whose line goes on
  return lines
    .map((line) => {
      if (line.gap !== null) return `--- ${line.process}: ${gapText(line.gap)}\n`;
      const whose = `${line.process} ${line.stream ?? ''}`;
      const head = open.has(whose) ? '' : `${line.at ?? ''} ${line.process} ${line.stream === 'STDERR' ? '!' : '|'} `;
      if (line.continues) open.add(whose);
      else open.delete(whose);
      return `${head}${line.text}${line.continues ? '' : '\n'}`;
    })
    .join('');
}
