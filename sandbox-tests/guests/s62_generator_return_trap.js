export default async function () {
  function* trap() { for (;;) { try { for (;;); yield 1; } finally { for (;;); } } }
  for (;;) { try { for (const _ of trap()) break; } catch { /* again */ } }
}
