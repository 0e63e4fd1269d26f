// Tabs for addresses that are known only after the platform has answered.

/** A tab that was opened and does not have its address yet. */
export interface Tab {
  /** Leads the tab to its address. */
  readonly go: (address: string) => void;
  readonly close: () => void;
}

/**
 * Opens an empty tab; called in the click itself, since browsers block what is opened later. The tab cannot access the
 * console. Returns undefined where the browser blocks even this.
 */
export function openTab(title: string, page: Pick<Window, 'open'> = window): Tab | undefined {
  const tab = page.open('about:blank', '_blank');
  if (tab === null) return undefined;
  tab.opener = null;
  tab.document.title = title;
  return { go: (address) => tab.location.replace(address), close: () => tab.close() };
}
