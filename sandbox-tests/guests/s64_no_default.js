export const run = async () => "wrong";
