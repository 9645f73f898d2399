await new Promise(() => {});
export default async function () {
  return "never";
}
