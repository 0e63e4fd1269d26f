import js from '@eslint/js';
import a11y from 'eslint-plugin-jsx-a11y';
import hooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

const nodeGlobals = Object.fromEntries(
  ['process', 'console', 'URL', 'fetch', 'setTimeout', 'clearTimeout', 'Buffer', 'structuredClone'].map((name) => [
    name,
    'readonly',
  ]),
);

export default tseslint.config(
  { ignores: ['dist', 'src/generated', 'node_modules'] },
  js.configs.recommended,
  {
    files: ['src/**/*.{ts,tsx}', 'vite.config.ts'],
    extends: [...tseslint.configs.strictTypeChecked, hooks.configs.flat.recommended, a11y.flatConfigs.strict],
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      'jsx-a11y/label-has-associated-control': 'off', // Mantine's inputs bring their own label
      // A box that scrolls must be reachable with the keyboard.
      'jsx-a11y/no-noninteractive-tabindex': ['error', { roles: ['tabpanel', 'region'], tags: ['ol', 'pre'] }],
      'jsx-a11y/no-autofocus': 'off', // dialogs and the login page put the focus where the work is
    },
  },
  { files: ['**/*.mjs', 'eslint.config.js'], languageOptions: { globals: nodeGlobals } },
  { files: ['public/*.js'], languageOptions: { globals: { document: 'readonly', window: 'readonly' } } },
  {
    files: ['src/**/*.test.{ts,tsx}'],
    rules: {
      '@typescript-eslint/require-await': 'off', // generators that act as feeds
      'react-hooks/rules-of-hooks': 'off', // a test's useServer is not a hook
    },
  },
  {
    files: ['e2e/**/*.mjs'],
    languageOptions: { globals: { document: 'readonly', window: 'readonly', getComputedStyle: 'readonly' } },
  },
);
