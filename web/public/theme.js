// Sets the colour scheme before the first paint. A file of its own, because the content security policy allows
// no inline script.
(function () {
  var scheme = null;
  try {
    scheme = window.localStorage.getItem('gpuaas-color-scheme');
  } catch {
    // storage may be off; the system's preference then decides
  }
  if (scheme !== 'light' && scheme !== 'dark') {
    scheme = window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  }
  document.documentElement.setAttribute('data-mantine-color-scheme', scheme);
})();
