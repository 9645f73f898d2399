export default async function () {
  const found = [];
  const specifiers = [
    "ext:core/mod.js", "ext:core/ops", "ext:deno_web/locks.js", "ext:cambium/base.js", "node:fs",
    "npm:x", "jsr:x", "file:///etc/passwd", "data:text/javascript,export default 1",
    "blob:null/1", "http://127.0.0.1/", "./x.js", "/etc/passwd", "tool:acme__tool",
    "tool:acme__tool?x", "", "x",
  ];
  for (const specifier of specifiers) {
    for (const options of [undefined, { with: { type: "json" } }, { with: { type: "text" } }]) {
      try {
        found.push(Object.keys(await import(specifier, options)));
      } catch (error) {
        if (!(error instanceof TypeError)) found.push(`${specifier}: ${error}`);
      }
    }
  }
  return found;
}
