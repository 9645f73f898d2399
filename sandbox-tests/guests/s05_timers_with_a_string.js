export default async function () {
  const found = [];
  globalThis.ran = 0;
  for (const timer of [setTimeout, setInterval, queueMicrotask]) {
    try {
      timer("globalThis.ran = 1", 0);
      found.push("no error");
    } catch (error) {
      if (!(error instanceof TypeError)) found.push(String(error));
    }
  }
  await new Promise((resolve) => setTimeout(resolve, 5));
  if (globalThis.ran) found.push("it ran");
  return found;
}
