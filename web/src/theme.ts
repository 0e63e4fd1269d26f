// The console's look: neutral greens-greys for surfaces, one pine accent, five tones for states.
import { createTheme } from '@mantine/core';
import type { MantineColorsTuple } from '@mantine/core';

const pine: MantineColorsTuple = [
  '#ecf7f4',
  '#d6ebe5',
  '#abd7cb',
  '#7dc2b0',
  '#57b099',
  '#3da48b',
  '#2c8f78',
  '#1b7562',
  '#115f50',
  '#084a3e',
];

/** Mantine's greys with the surface's slight green, so that borders and disabled states match it. */
const gray: MantineColorsTuple = [
  '#f7f9f8',
  '#eff2f1',
  '#e3e8e6',
  '#d3dad8',
  '#b9c3c0',
  '#97a39f',
  '#74817d',
  '#55625e',
  '#38433f',
  '#1d2624',
];

/** Destructive actions. */
const red: MantineColorsTuple = [
  '#fdecea',
  '#f9d2ce',
  '#f2a9a2',
  '#ea7d73',
  '#e0564a',
  '#d03c30',
  '#c22f24',
  '#b3261e',
  '#961d16',
  '#76140e',
];

/** The dark scheme, from text (0) to the page's ground (9). */
const dark: MantineColorsTuple = [
  '#dfe7e4',
  '#b3c0bc',
  '#8c9a96',
  '#5d6c68',
  '#3a4744',
  '#2a3532',
  '#1d2624',
  '#161d1c',
  '#111716',
  '#0c1110',
];

// system-ui is left out on purpose: on many Linux desktops it is a wide face that breaks dense tables.
const sans = '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", Arial, sans-serif';
const mono =
  'ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, "Liberation Mono", monospace';

/** Mantine's theme; the colours of surfaces and states are CSS variables in styles/base.css. */
export const theme = createTheme({
  colors: { pine, gray, dark, red },
  primaryColor: 'pine',
  primaryShade: 7,
  black: '#16201e',
  fontFamily: sans,
  fontFamilyMonospace: mono,
  defaultRadius: 'sm',
  radius: { xs: '3px', sm: '6px', md: '8px', lg: '12px', xl: '18px' },
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '19px' },
  headings: { fontFamily: sans, fontWeight: '620' },
  cursorType: 'pointer',
  focusRing: 'auto',
  components: {
    InputWrapper: { defaultProps: { inputWrapperOrder: ['label', 'input', 'description', 'error'] } }, // keeps inputs of a row in line
    Button: { defaultProps: { size: 'sm' } },
    TextInput: { defaultProps: { size: 'sm' } },
    Drawer: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } },
    Modal: {
      defaultProps: {
        closeButtonProps: { 'aria-label': 'Close' },
        centered: true,
        radius: 'md',
        overlayProps: { backgroundOpacity: 0.35, blur: 2 },
        transitionProps: { duration: 120 },
      },
    },
    Tooltip: { defaultProps: { openDelay: 250, withArrow: true, multiline: true, maw: 320 } },
  },
});
