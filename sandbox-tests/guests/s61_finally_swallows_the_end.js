export default async function () {
  for (;;) { try { for (;;); } finally { continue; } }
}
