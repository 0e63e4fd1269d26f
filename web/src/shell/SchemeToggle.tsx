// The choice of the colour scheme.
import { ActionIcon, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { Icon } from '../ui/Icons';

/** Switches between the light and the dark scheme. */
export function SchemeToggle() {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme('light');
  const next = scheme === 'dark' ? 'light' : 'dark';
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label={`Switch to the ${next} scheme`}
      onClick={() => setColorScheme(next)}
    >
      <Icon name={scheme === 'dark' ? 'sun' : 'moon'} size={18} />
    </ActionIcon>
  );
}
