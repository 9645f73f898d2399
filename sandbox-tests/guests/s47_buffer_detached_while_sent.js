export default async function (ctx) {
  const buffer = new ArrayBuffer(4, { maxByteLength: 8 });
  new Uint8Array(buffer).set([97, 98, 99, 100]);
  const sent = ctx.fetch("/bytes", { method: "POST", body: buffer });
  new Uint8Array(buffer).fill(120);
  buffer.resize(1);
  buffer.transfer();
  return (await sent).status;
}
