// One `deno run` per call: a fresh process with network permission for the vendor alone. The bench times the
// whole process from outside.
const response = await fetch(Deno.env.get("VENDOR_URL") + "/orders?limit=20", {
  headers: { authorization: `Bearer ${Deno.env.get("VENDOR_TOKEN")}` },
});
const { orders } = await response.json();
console.log(JSON.stringify(orders.map((order: { id: string; total: number }) => ({ id: order.id, total: order.total }))));
