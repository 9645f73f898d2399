// A Deno host: a line in is the body of an async function, as JSON; each runs in a worker without permissions,
// which is ended after a second.
const LIMIT = 1_000;

function run(body: string): Promise<void> {
  const code = `(async () => { ${body} })().then(() => self.postMessage(1), () => self.postMessage(0));`;
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module", deno: { permissions: "none" } } as WorkerOptions);
  return new Promise((ended) => {
    const end = () => {
      clearTimeout(timer);
      worker.terminate();
      URL.revokeObjectURL(url);
      ended();
    };
    const timer = setTimeout(end, LIMIT);
    worker.onmessage = end;
    worker.onerror = (event) => {
      event.preventDefault();
      end();
    };
  });
}

console.log("up");
const decoder = new TextDecoder();
let text = "";
for await (const chunk of Deno.stdin.readable) {
  text += decoder.decode(chunk, { stream: true });
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n")) {
    const line = text.slice(0, at);
    text = text.slice(at + 1);
    await run(JSON.parse(line));
    console.log("ended");
  }
}
