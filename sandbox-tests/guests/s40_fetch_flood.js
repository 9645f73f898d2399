export default async function (ctx) {
  let answered = 0;
  let refused = 0;
  await Promise.all(Array.from({ length: 300 }, (_, i) =>
    ctx.fetch(`/flood/${i}`).then((response) => response.text()).then(
      () => answered++,
      (error) => { if (error.code === "run_request_cap") refused++; },
    )));
  return { answered, refused };
}
