await Promise.resolve();
throw new Error("at the top");
export default async function () {}
