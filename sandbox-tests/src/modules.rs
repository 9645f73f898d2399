//! Modules out of parts, by a seed: every way somebody found to reach `ctx.fetch`,
//! to say a method and to change what was said, put together at random. What the
//! check says of one and what it does when it runs is compared by a test. The
//! same seed gives the same module.

/// A random sequence that is the same everywhere: splitmix64.
#[derive(Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// Starts one.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        let index = usize::try_from(self.next() % of.len() as u64).unwrap_or(0);
        of.get(index).copied().unwrap_or_default()
    }

    /// One of the first `plain`, which the check follows, or of all: always in a
    /// wild module, now and then in another.
    fn mostly<'a>(&mut self, wild: bool, plain: usize, of: &[&'a str]) -> &'a str {
        let plain = if wild || self.once_in(7) { of.len() } else { plain };
        self.one(&of[..plain])
    }

    /// True once in `times`.
    fn once_in(&mut self, times: u64) -> bool {
        self.next().is_multiple_of(times)
    }
}

const VERBS: &[&str] = &["GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// The first parameter: its pattern, and what is the context in the body.
const PARAMETERS: &[(&str, &str)] = &[
    ("ctx, input", "ctx"),
    ("ctx, input", "ctx"),
    ("ctx, input", "ctx"),
    ("c, input", "c"),
    ("{ fetch: taken, ...ctx }, input", "({ fetch: taken })"),
    ("{ fetch: taken }, input", "({ fetch: taken })"),
    ("{ [\"fetch\"]: taken }, input", "({ fetch: taken })"),
    ("ctx = {}, input", "ctx"),
    ("ctx, input, other = ctx", "other"),
    ("...all", "all[0]"),
    ("", "arguments[0]"),
];

/// Ways to hold the way out as `F`; `C` is the context.
/// Without any, the context itself is called. The first are followed.
const TAKEN: &[&str] = &[
    "",
    "",
    "",
    "const F = C.fetch;",
    "const { fetch: F } = C;",
    "const F = C['fetch'];",
    "const F = C[`fetch`];",
    "const F = C['fe' + 'tch'];",
    "const k = 'fetch'; const F = C[k];",
    "const k = String.fromCharCode(102) + 'etch'; const F = C[k];",
    "const { ['fetch']: F } = C;",
    "const { ['fe' + 'tch']: F } = C;",
    "const { fetch: F = null } = C;",
    "const { ...rest } = C; const F = rest.fetch;",
    "const F = { ...C }.fetch;",
    "const F = Object.values(C).find((v) => typeof v === 'function');",
    "const F = Object.entries(C).find(([key]) => key === 'fetch')[1];",
    "const F = Reflect.get(C, 'fetch');",
    "const F = Object.getOwnPropertyDescriptor(C, 'fetch').value;",
    "let F; ({ fetch: F } = C);",
    "let F; [F] = [C.fetch];",
    "let F = null; F ??= C.fetch;",
    "let D = C; const F = D.fetch;",
    "var D; D = C; const F = D.fetch;",
    "const F = (() => C.fetch)();",
    "const F = ((x) => x.fetch)(C);",
    "const F = ((x = C) => x.fetch)();",
    "const F = (function () { return arguments[0].fetch; })(C);",
    "const F = (function () { return this.fetch; }).call(C);",
    "const F = new Proxy(C.fetch, {});",
    "const F = new Proxy(C, {}).fetch;",
    "const F = new Proxy(C.fetch, { apply: (t, s, a) => t(a[0], { ...a[1], method: M }) });",
    "const F = C.fetch.bind(C);",
    "const F = C.fetch.bind(null, '/x', { method: M });",
    "const F = (...a) => C.fetch(...a);",
    "const F = (a, b) => C.fetch(a, b);",
    "const F = (a, b) => C.fetch.call(C, a, b);",
    "const F = (a, b) => C.fetch.apply(C, [a, b]);",
    "const F = (a, b) => Reflect.apply(C.fetch, C, [a, b]);",
    "function* g() { yield C.fetch; } const F = g().next().value;",
    "async function* g() { yield C; } const F = (await g().next()).value.fetch;",
    "const F = [C.fetch][0];",
    "const F = [C].map((c) => c.fetch)[0];",
    "const F = new Map([['f', C.fetch]]).get('f');",
    "class K { static f = C.fetch; } const F = K.f;",
    "class K { #c = C; get f() { return this.#c.fetch; } } const F = new K().f;",
    "class K { constructor(c) { Object.assign(this, c); } } const F = new K(C).fetch;",
    "const F = Object.create(C).fetch;",
    "const F = ({ __proto__: C }).fetch;",
    "const F = Object.assign({}, C).fetch;",
    "globalThis.kept = C.fetch; const F = globalThis.kept;",
    "self.kept = C; const F = kept.fetch;",
    "const F = (0, C.fetch);",
    "const F = C?.fetch;",
    "const F = input ? C.fetch : C.fetch;",
    "const F = null ?? C.fetch;",
    "const F = C && C.fetch;",
    "const F = await C.fetch;",
    "const { F } = await Promise.resolve({ F: C.fetch });",
    "let F; for (const c of [C]) F = c.fetch;",
    "let F; for (const k in C) if (k === 'fetch') F = C[k];",
    "let F; try { throw C; } catch (c) { F = c.fetch; }",
    "let F; try { throw C; } catch ({ fetch }) { F = fetch; }",
    "const F = ((s, c) => c.fetch)`${C}`;",
    "const o = { get f() { return C.fetch; } }; const F = o.f;",
    "const o = { c: C }; const { c: { fetch: F } } = o;",
    "let F; { const real = C; { const C2 = { fetch: (p, i) => real.fetch(p, { ...i, method: M }) }; F = C2.fetch; } }",
    "const F = (p, i) => { const w = new WeakRef(C); return w.deref().fetch(p, i); };",
    "const F = structuredClone.call ? C.fetch : C.fetch;",
    "let F = C.fetch; F = ((f) => (p) => f(p, { method: M }))(F);",
    "var F = C.fetch; var F;",
    "const F = C.fetch; function F2() { return F(...arguments); }",
    "const F = Function.prototype.call.bind(C.fetch, C);",
    "const F = Promise.try ? await Promise.try(() => C.fetch) : C.fetch;",
    "const F = (p, i) => fetch(C.proxyBase + p, i);",
    "const F = (p, i) => globalThis.fetch(new Request(C.proxyBase + p, i));",
    "const F = (p, i) => self['fetch'](C.proxyBase + p, i);",
    "const g = fetch; const F = (p, i) => g(C.proxyBase + p, i);",
    "const F = (p, i) => (0, fetch)(`${C.proxyBase}${p}`, i);",
];

/// Ways to say a method; `V` is the verb.
const METHODS: &[&str] = &[
    "'V'",
    "'V'",
    "\"V\"",
    "`V`",
    "'V'.toLowerCase()",
    "'V'.toUpperCase()",
    "('V')",
    "(0, 'V')",
    "'V' || 'GET'",
    "input.missing ?? 'V'",
    "(input.id ? 'V' : 'GET')",
    "(input.id ? 'GET' : 'V')",
    "['V'][0]",
    "({ m: 'V' }).m",
    "['V'].join('')",
    "String('V')",
    "new String('V').toString()",
    "'xV'.slice(1)",
    "'V'.split('').reverse().reverse().join('')",
    "atob(btoa('V'))",
    "(() => 'V')()",
    "[...'V'].join('')",
    "'V'.at(0) + 'V'.slice(1)",
    "JSON.parse('\"V\"')",
    "Object.keys({ V: 1 })[0]",
    "Symbol('V').description",
    "/V/.source",
    "verb",
    "changing",
    "holder.verb",
    "undefined",
];

/// Ways to say the rest of a request as `I`, after the path; `M` is a method. What
/// opens with `@` stands in the call itself; the first are followed.
const INITS: &[&str] = &[
    "",
    "",
    "@{}",
    "@{ method: M }",
    "@{ method: M }",
    "@{ 'method': M }",
    "@{ method: M, headers: { accept: 'a/b' } }",
    "@{ ...{ method: M } }",
    "@{ method: 'GET', ...input.missing, method: M }",
    "@{ __proto__: { method: M } }",
    "@{ ['method']: M }",
    "@(0, { method: M })",
    "@input.id ? { method: M } : { method: 'GET' }",
    "@input.missing ?? { method: M }",
    "@[{ method: M }][0]",
    "@(() => ({ method: M }))()",
    "const I = undefined;",
    "const I = {};",
    "const I = { method: M };",
    "const I = { 'method': M };",
    "const I = { ['method']: M };",
    "const I = { ['met' + 'hod']: M };",
    "const I = { ...{ method: M } };",
    "const I = { method: 'GET', ...{ method: M } };",
    "const I = { method: 'GET', method: M };",
    "const I = { ...{ method: M }, method: 'GET' };",
    "const method = M; const I = { method };",
    "const I = { method: 'GET' }; I.method = M;",
    "const I = { method: 'GET' }; I['method'] = M;",
    "const I = { method: 'GET' }; const J = I; J.method = M;",
    "const I = { method: 'GET' }; [I.method] = [M];",
    "const I = { method: 'GET' }; ({ method: I.method } = { method: M });",
    "const I = { method: '' }; I.method ||= M;",
    "const I = { method: null }; I.method ??= M;",
    "const I = { method: 'GET' }; for (I.method of [M]);",
    "const I = { method: 'GET' }; ((x) => { x.method = M; })(I);",
    "const I = { method: 'GET' }; (function () { this.method = M; }).call(I);",
    "const I = { method: 'GET' }; Object.assign(I, { method: M });",
    "const I = { method: 'GET' }; delete I.method; I.method = M;",
    "const I = { method: 'GET' }; Reflect.set(I, 'method', M);",
    "const I = Object.assign({ method: 'GET' }, { method: M });",
    "const I = Object.defineProperty({}, 'method', { value: M, enumerable: true });",
    "const I = Object.create({ method: M });",
    "const I = { __proto__: { method: M } };",
    "const I = { headers: { accept: 'a/b' }, __proto__: { method: M } };",
    "const I = JSON.parse(JSON.stringify({ method: M }));",
    "const I = new (class { method = M; })();",
    "const I = (() => ({ method: M }))();",
    "const I = [{ method: M }][0];",
    "const I = { get method() { return M; } };",
    "const I = new Proxy({ method: 'GET' }, { get: () => M, getOwnPropertyDescriptor: () => ({ value: M, configurable: true, enumerable: true }) });",
    "const I = structuredClone({ method: M });",
    "const I = Object.fromEntries([['method', M]]);",
    "let I = { method: 'GET' }; I = { method: M };",
    "var I = { method: 'GET' }; var I = { method: M };",
    "const I = Object.freeze({ method: M });",
    "const I = { method: M, body: 'GET,HEAD'.includes(M) ? undefined : 'x' };",
    "const I = { method: M, headers: { 'x-http-method-override': 'DELETE' } };",
    "const I = { query: { method: M } };",
    "const I = { host: 'files', method: M };",
];

/// Ways to call with a path `P` and perhaps an init `I`.
const CALLS: &[&str] = &[
    "await F(P, I);",
    "await F(P, I);",
    "await F(P, I);",
    "await (F)(P, I);",
    "await F?.(P, I);",
    "await F.call(null, P, I);",
    "await F.apply(null, [P, I]);",
    "await Reflect.apply(F, null, [P, I]);",
    "await F(...[P, I]);",
    "await F(P, ...[I]);",
    "await [P].map((p) => F(p, I))[0];",
    "await Promise.all([F(P, I)]);",
    "await F.bind(null, P)(I);",
    "await (async () => { return await F(P, I); })();",
    "for (const p of [P]) await F(p, I);",
    "await Promise.resolve().then(() => F(P, I));",
    "await new Promise((r) => setTimeout(() => r(F(P, I)), 0));",
    "await (function* () { yield F(P, I); })().next().value;",
    "await (input.missing ?? F)(P, I);",
];

const PATHS: &[&str] = &[
    "'/x'",
    "'/x'",
    "'/x?a=1'",
    "`/x/${encodeURIComponent(input.id)}`",
    "`/x/${encodeURIComponent(input.id)}/y`",
    "`/x/${input.id}`",
    "'/x' + '/y'",
    "path",
    "['/x', '/y'][1]",
    "(input.id ? '/x' : '/y')",
    "'/x'.replace('x', 'z')",
];

/// What changes the ground under all of it; `V` is a verb.
const POLLUTED: &[&str] = &[
    "Object.prototype.method = 'V';",
    "Object.defineProperty(Object.prototype, 'method', { value: 'V', enumerable: true });",
    "Object.defineProperty(Object.prototype, 'method', { get: () => 'V', set() {} });",
    "Object.prototype.path = '/polluted'; Object.prototype.host = 'files';",
    "String.prototype.toUpperCase = () => 'V';",
    "String.prototype.slice = () => 'V'; String.prototype.replace = () => '/polluted';",
    "Array.prototype[Symbol.iterator] = function* () { yield '/polluted'; yield { method: 'V' }; };",
    "Array.prototype.map = (f) => [f('/polluted', 0)];",
    "Object.assign = () => ({ method: 'V' });",
    "Object.fromEntries = Object.create = Object.freeze = () => ({ method: 'V' });",
    "try { Function.prototype.call = function (s, p) { return this(p, { method: 'V' }); }; } catch {}",
    "Function.prototype.apply = function (s, a) { return this(a[0], { method: 'V' }); };",
    "Function.prototype.bind = function () { return (p) => this(p, { method: 'V' }); };",
    "Reflect.apply = (f, s, a) => f(a[0], { method: 'V' });",
    "Reflect.get = (t) => (p) => t.fetch(p, { method: 'V' });",
    "JSON.parse = () => ({ method: 'V' });",
    "structuredClone = () => ({ method: 'V' });",
    "globalThis.encodeURIComponent = () => '../../polluted';",
    "encodeURIComponent = (x) => `${x}/polluted`;",
    "String = () => 'V'; btoa = atob = () => 'V';",
    "Promise.prototype.then = function (f) { return f({ status: 200 }); };",
    "Object.prototype.toString = String.prototype.toString = () => 'V';",
    "Headers.prototype.get = () => 'V'; Response.prototype.text = () => 'V';",
    "globalThis.undefined = 1;",
    "Object.setPrototypeOf(Object.prototype, null);",
    "RegExp.prototype.exec = () => ['V'];",
];

/// A module for a seed.
pub fn module(seed: u64) -> String {
    let mut from = Seeded::new(seed);
    let wild = from.once_in(4);
    let &(parameters, context) = {
        let plain = if wild || from.once_in(10) { PARAMETERS.len() } else { 4 };
        let index = usize::try_from(from.next() % plain as u64).unwrap_or(0);
        PARAMETERS.get(index).unwrap_or(&PARAMETERS[0])
    };
    let input = if parameters.contains("input") { "" } else { "const input = { id: 'a b' };\n" };
    let verb = from.one(VERBS);
    let mut top = format!(
        "let changing = 'GET';\nconst verb = '{verb}';\nconst holder = {{ verb }};\nconst path = '/x';\n"
    );
    let mut body = String::new();
    if from.once_in(3) {
        let polluted = from.one(POLLUTED).replace('V', from.one(VERBS));
        if from.once_in(2) { &mut top } else { &mut body }.push_str(&format!("{polluted}\n"));
    }
    if from.once_in(4) {
        body += &format!("changing = '{}';\n", from.one(VERBS));
    }
    let verbs = if from.once_in(2) { &VERBS[..3] } else { VERBS };
    for _ in 0..=from.next() % 2 {
        let verb = from.one(if wild { VERBS } else { verbs });
        let method = from.mostly(wild, 4, METHODS).replace('V', verb);
        let taken = from.mostly(wild, 5, TAKEN);
        let init = from.mostly(wild, 7, INITS);
        let path = from.mostly(wild, 5, PATHS);
        let mut call = whole_word(from.mostly(wild, 3, CALLS), 'P', path);
        if taken.is_empty() {
            call = whole_word(&call, 'F', &format!("{context}.fetch"));
        }
        let taken = whole_word(taken, 'C', context);
        let init = match init.strip_prefix('@') {
            Some(inside) => {
                call = whole_word(&call, 'I', inside);
                "const I = 0;"
            }
            None => init,
        };
        if init.is_empty() {
            call = call.replace(", ...[I]", "").replace(", I", "").replace("(I)", "()");
        }
        let text = whole_word(&format!("{taken} {init} {call}"), 'M', &method);
        body +=
            &format!("try {{ {text} }} catch (error) {{ if (error === input) throw error; }}\n");
    }
    if parameters.contains("taken, ...ctx") {
        body = body.replace("({ fetch: taken }).proxyBase", "ctx.proxyBase");
    }
    format!(
        "export const description = \"Generated.\";\nexport const inputSchema = {{ type: \"object\", \
         properties: {{ id: {{ type: \"string\" }} }}, additionalProperties: false }};\n{top}\
         export default async function ({parameters}) {{\n{input}{body}return 1;\n}}\n"
    )
}

/// Replaces a letter where it stands alone.
fn whole_word(text: &str, letter: char, by: &str) -> String {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '#';
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let alone = c == letter && !part(before) && !rest.peek().is_some_and(|&next| part(next));
        if alone {
            out.push_str(by)
        } else {
            out.push(c)
        }
        before = c;
    }
    out
}
