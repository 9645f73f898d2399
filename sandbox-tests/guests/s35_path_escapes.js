export default async function (ctx) {
  const found = [];
  const paths = ["//evil.test/", "https://evil.test/", "/\\evil.test", "/../admin", "/%2e%2e/admin",
    "/a\r\nx: y", "@evil.test/", "/\0", "/" + "a".repeat(100000), "", "evil", "/%2f%2fevil"];
  for (const path of paths) {
    try {
      const response = await ctx.fetch(path);
      found.push(`${path.slice(0, 20)}: ${response.status}`);
    } catch (error) {
      if (!error.code) found.push(String(error));
    }
  }
  return found;
}
