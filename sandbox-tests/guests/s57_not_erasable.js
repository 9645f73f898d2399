// Each part by itself; all of them are more than types.
enum Colour { Red }
// ---
const enum Colour { Red }
// ---
namespace Inner { export const a = 1; }
// ---
module Inner { export const a = 1; }
// ---
import fs = require("fs");
// ---
export = 1;
// ---
@sealed class Marked {}
// ---
class Marked { @field a = 1; }
// ---
class Marked { constructor(private a: number) {} }
// ---
const element = <div>text</div>;
// ---
const element = <></>;
