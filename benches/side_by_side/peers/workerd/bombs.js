// Loads a fresh worker for each request, whose body is the body of an async function; answers when it ended, however
// it did.
let next = 0;
export default {
  async fetch(request, env) {
    const body = await request.text();
    const source = `export default {
      async fetch() { await (async () => { ${body} })(); return new Response(); },
    };`;
    const worker = env.LOADER.get(`bomb-${next++}`, () => ({
      compatibilityDate: "2026-11-01",
      mainModule: "bomb.js",
      modules: { "bomb.js": source },
      globalOutbound: null,
    }));
    try {
      await worker.getEntrypoint().fetch("http://bomb/");
    } catch {
      // It threw or could not be loaded: that is an end.
    }
    return new Response();
  },
};
