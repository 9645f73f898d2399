for (;;);
export default async function () {}
