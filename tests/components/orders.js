// A tool in JavaScript as a component: lists orders, or makes one when asked for an item.
export async function run(input) {
  const { base, item } = JSON.parse(input);
  console.log(item === undefined ? "listing" : `ordering ${item}`);
  const init = item === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ item }),
  };
  const res = await fetch(`${base}/orders`, init);
  return JSON.stringify({ status: res.status, said: await res.json() });
}
