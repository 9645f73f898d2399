export default async function () {
  for (let i = 0; i < 1e4; i++) Promise.reject(new Error(`r${i}`));
  Promise.reject(new Proxy({}, { get() { throw 1; } }));
  await new Promise((resolve) => setTimeout(resolve, 1000));
  return ["not ended"];
}
