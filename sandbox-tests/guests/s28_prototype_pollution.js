export default async function (ctx) {
  Object.prototype.method = "DELETE";
  Object.prototype.body = "polluted";
  Object.prototype.host = "evil.test";
  Object.prototype.value = "polluted";
  Object.prototype.headers = { "x-polluted": "1" };
  Object.prototype.sdk = true;
  Object.prototype.query = { polluted: "1" };
  const response = await ctx.fetch("/plain");
  const again = await ctx.fetch("/init", { headers: { accept: "text/plain" } });
  return [response.status, again.status];
}
