//! The bombs: what each exhausts, the body of its tool, and how it may end:
//! `T` out of time or CPU, `M` out of memory, `E` it throws, `S` too large a
//! result, `N` never settles, `o` it is harmless here and returns.

/// What a bomb exhausts, or how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Loops that nothing inside can end.
    Loops,
    /// Built-ins that never look up from their work.
    BuiltIns,
    /// Big integers and number formatting.
    Numbers,
    /// Regular expressions.
    Patterns,
    /// Strings and JSON.
    Text,
    /// Bytes outside V8's heap.
    Buffers,
    /// Objects without end.
    Floods,
    /// The stack.
    Depth,
    /// Code of the module where ours is reading.
    Hooks,
}

/// One row.
pub(crate) struct Bomb {
    pub(crate) class: Class,
    pub(crate) name: &'static str,
    pub(crate) ends: &'static str,
    pub(crate) body: &'static str,
}

macro_rules! table {
    ($($class:ident { $($name:ident $ends:literal $body:literal)* })*) => {
        pub(crate) const BOMBS: &[Bomb] = &[$($(Bomb {
            class: Class::$class,
            name: stringify!($name),
            ends: $ends,
            body: $body,
        },)*)*];
    };
}

table! {
    Loops {
        while_true "T" "while (true) {}"
        for_empty "T" "for (;;);"
        do_while "T" "do {} while (1 < 2);"
        label_continue "T" "outer: for (;;) { for (;;) continue outer; }"
        catch_and_go_on "T" "for (;;) { try { throw 1; } catch {} }"
        finally_continues "T" "for (;;) { try { for (;;); } finally { continue; } }"
        generator_spins "T" "function* g() { for (;;) yield; } for (const _ of g());"
        generator_finally "T" "function* g() { try { yield; } finally { for (;;); } } for (const _ of g()) break;"
        await_null "T" "for (;;) await null;"
        await_and_catch "T" "for (;;) { try { await Promise.reject(1); } catch {} }"
        async_generator "T" "async function* g() { for (;;) yield; } for await (const _ of g());"
        then_itself "T" "const again = () => Promise.resolve().then(again); again(); await new Promise(() => {});"
        queue_itself "T" "const again = () => queueMicrotask(again); again(); await new Promise(() => {});"
        timer_chain "T" "const again = () => setTimeout(again, 0); again(); await new Promise(() => {});"
        interval "T" "setInterval(() => {}, 0); await new Promise(() => {});"
        sleep_long "T" "await new Promise((resolve) => setTimeout(resolve, 1e9));"
        recursion_caught "T" "const f = () => { try { f(); } catch { for (;;) f(); } }; f();"
        yield_star "T" "function* g() { for (;;) yield* [1, 2]; } for (const _ of g());"
        iterator_helper "T" "const it = { next: () => ({ done: false }), __proto__: Iterator.prototype }; it.some(() => false);"
        dispatch_again "T" "const t = new EventTarget(); t.addEventListener('a', () => { for (;;) t.dispatchEvent(new Event('b')); }); t.dispatchEvent(new Event('a'));"
        abort_listener "T" "const c = new AbortController(); c.signal.addEventListener('abort', () => { for (;;); }); c.abort();"
        stream_pull "T" "const r = new ReadableStream({ pull(c) { c.enqueue(1); } }).getReader(); for (;;) await r.read();"
        after_return "o" "setTimeout(() => { for (;;); }, 0); return 1;"
    }
    BuiltIns {
        includes_far "T" "return [].includes.call({ length: 2 ** 53 - 1 }, 1);"
        index_of_far "T" "return [].indexOf.call({ length: 2 ** 53 - 1 }, 1);"
        last_index_of_far "T" "return [].lastIndexOf.call({ length: 2 ** 53 - 1 }, 1);"
        copy_within_far "T" "return [].copyWithin.call({ length: 2 ** 53 - 1 }, 1, 0);"
        splice_far "T" "return [].splice.call({ length: 2 ** 53 - 1 }, 0, 1);"
        unshift_far "T" "return [].unshift.call({ length: 2 ** 53 - 2 }, 1);"
        shift_far "T" "return [].shift.call({ length: 2 ** 53 - 1 });"
        reverse_far "T" "return [].reverse.call({ length: 2 ** 53 - 1 });"
        fill_far "TM" "return [].fill.call({ length: 2 ** 53 - 1 }, 0);"
        for_each_far "T" "return [].forEach.call({ length: 2 ** 53 - 1 }, () => {});"
        find_last_far "T" "return [].findLast.call({ length: 2 ** 53 - 1 }, () => false);"
        every_far "T" "return [].every.call({ length: 2 ** 53 - 1 }, () => true);"
        reduce_far "TE" "return [].reduce.call({ length: 2 ** 53 - 1 }, () => 0);"
        sort_far "TME" "return [].sort.call({ length: 2 ** 53 - 1 });"
        join_far "TME" "return [].join.call({ length: 2 ** 53 - 1 }, '');"
        slice_far "E" "return [].slice.call({ length: 2 ** 53 - 1 });"
        to_sorted_far "E" "return [].toSorted.call({ length: 2 ** 53 - 1 });"
        concat_far "TEo" "return [].concat({ length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true }, [1]);"
        push_far "E" "return [].push.call({ length: 2 ** 53 - 1 }, 1);"
        from_length "TM" "return Array.from({ length: 1e9 }).length;"
        from_async "TM" "return (await Array.fromAsync({ length: 1e9 })).length;"
        longest_index_of "T" "const a = []; a.length = 2 ** 32 - 1; return a.indexOf(1);"
        longest_fill "TM" "return new Array(2 ** 32 - 1).fill(0).length;"
        longest_join "TME" "return new Array(2 ** 32 - 1).join('x');"
        longest_flat "T" "return new Array(2 ** 32 - 1).flat();"
        apply_long "E" "return Math.max.apply(null, { length: 1e9 });"
        spread_long "TME" "return Math.max(...new Array(1e8));"
        raw_long "TM" "return String.raw({ raw: { length: 2 ** 53 - 1 } });"
        object_keys_of_text "TM" "return Object.keys('x'.repeat(5e7)).length;"
        from_entries "TM" "return Object.fromEntries({ *[Symbol.iterator]() { for (let i = 0; ; i++) yield [i, i]; } });"
        group_by "TM" "return Object.groupBy({ *[Symbol.iterator]() { for (let i = 0; ; i++) yield i; } }, (i) => i);"
        assign_sparse "TM" "const a = []; for (let i = 0; ; i += 4096) a[i] = i;"
        sort_hostile "T" "const a = Array.from({ length: 3e5 }, (_, i) => i); for (;;) a.sort(() => Math.random() - 0.5);"
    }
    Numbers {
        power_tower "EM" "return 2n ** (2n ** 29n);"
        squares "TE" "let x = 3n; for (;;) x *= x;"
        squares_caught "T" "for (;;) { try { let x = 3n; for (;;) x *= x; } catch {} }"
        to_text "T" "for (;;) (10n ** 400000n).toString();"
        to_locale_text "T" "for (;;) (10n ** 400000n).toLocaleString();"
        parse_decimal "T" "for (;;) BigInt('9'.repeat(2e6));"
        parse_hex "TM" "const all = []; for (;;) all.push(BigInt('0x' + 'f'.repeat(1e7)));"
        as_uint "E" "return BigInt.asUintN(2 ** 53 - 1, -1n);"
        shift_left "E" "return 1n << 2n ** 30n;"
        divide "T" "const a = 7n ** 500000n, b = 3n ** 300000n; for (;;) a / b;"
        modulo_power "T" "let x = 3n; const m = 10n ** 50000n + 7n; for (;;) x = (x ** 50n) % m;"
        intl_dates "T" "for (;;) new Intl.DateTimeFormat('de', { dateStyle: 'full' }).format(0);"
        intl_numbers "T" "for (;;) new Intl.NumberFormat('fr', { style: 'currency', currency: 'EUR' }).format(1e300);"
        intl_collator "T" "const c = new Intl.Collator('sv'); const a = ['x'.repeat(1e6), 'x'.repeat(1e6) + 'y']; for (;;) c.compare(a[0], a[1]);"
        intl_segments "TM" "for (const _ of new Intl.Segmenter('th', { granularity: 'word' }).segment('ก'.repeat(1e7)));"
        intl_lists "TM" "for (;;) new Intl.ListFormat('en').format(new Array(1e6).fill('x'));"
        date_parse "T" "for (;;) Date.parse('x'.repeat(1e6));"
        to_fixed "T" "for (;;) (1e20).toFixed(100);"
        math_random "T" "for (;;) Math.random();"
        sum_precise "TMEo" "return Math.sumPrecise?.({ *[Symbol.iterator]() { for (;;) yield 0.1; } });"
    }
    Patterns {
        nested_plus "T" "return /(a+)+$/.test('a'.repeat(40) + 'b');"
        alternatives "T" "return /(a|aa)+$/.test('a'.repeat(60) + 'b');"
        stars_in_stars "T" "return /((a*)*)*b/.test('a'.repeat(40));"
        back_reference "T" "return /^(a+)+\\1+$/.test('a'.repeat(40) + 'b');"
        look_ahead "To" "return /(?=(a+)+$)b/.test('a'.repeat(40) + 'c');"
        look_behind "To" "return /(?<=^(a+)+)b/.test('a'.repeat(40) + 'cb');"
        unicode_classes "T" "return /(\\p{L}+)+\\d/u.test('é'.repeat(40));"
        set_notation "T" "return /([\\p{L}--[a-b]]+)+\\d/v.test('x'.repeat(40));"
        ignoring_case "T" "return /(A+)+$/i.test('a'.repeat(40) + 'b');"
        lazy "T" "return /^(a+?)+?$/.test('a'.repeat(40) + 'b');"
        replace_all "T" "return 'a'.repeat(40).concat('b').replace(/(a+)+$/g, '');"
        split_by "T" "return 'a'.repeat(40).concat('b').split(/(a+)+$/);"
        match_all "T" "return [...'a'.repeat(40).concat('b').matchAll(/(a+)+$/g)];"
        quantified "ETM" "return /(((a{1,1000}){1,1000}){1,1000})b/.test('a'.repeat(5000));"
        deep_groups "E" "return new RegExp('('.repeat(1e5));"
        many_groups "TEMo" "return new RegExp('(a)'.repeat(30000)).test('a');"
        long_class "TEMo" "return new RegExp('[' + 'ab'.repeat(5e6) + ']', 'u').test('c');"
        quadratic "T" "return /x*y/.test('x'.repeat(1e6));"
        matches_kept "TM" "const all = []; const s = 'ab'.repeat(1e6); for (;;) all.push(s.match(/a/g));"
        compile_flood "TM" "for (let i = 0; ; i++) new RegExp(`${i}(a|b)*c`).test('abab');"
        replacer_grows "TME" "let s = 'a'; for (;;) s = s.replace(/a/g, 'aa');"
        last_index "T" "const r = /(?:)/g; for (;;) { r.lastIndex = 0; r.exec(''); }"
    }
    Text {
        doubling "E" "let s = 'x'; for (;;) s += s;"
        doubling_caught "T" "for (;;) { try { let s = 'x'; for (;;) s += s; } catch {} }"
        repeat_flat "ME" "return 'x'.repeat(2 ** 29 - 30).charCodeAt(5e8);"
        cons_flattened "ME" "let s = 'ab'; while (s.length < 4e8) s += s; return /c/.test(s);"
        pad_end "MEo" "return 'x'.padEnd(2 ** 29 - 30, 'yz').length;"
        normalize "TME" "for (;;) 'é'.repeat(2e7).normalize('NFKD');"
        encode_uri "TME" "return encodeURIComponent('é'.repeat(5e7)).length;"
        escape_text "TMEo" "return escape('é'.repeat(5e7)).length;"
        split_characters "TME" "return 'x'.repeat(5e7).split('').length;"
        replace_grows "TME" "return 'a'.repeat(1e7).replaceAll('a', 'b'.repeat(100)).length;"
        upper_grows "TME" "return 'ß'.repeat(1e8).toUpperCase().length;"
        join_huge "E" "return new Array(1e4).fill('x'.repeat(1e6)).join('').length;"
        json_out "TMEo" "return JSON.stringify(new Array(1e3).fill('x'.repeat(1e5))).length;"
        json_in "TME" "return JSON.parse('[' + '1,'.repeat(4e7) + '1]').length;"
        json_escapes "TME" "return JSON.stringify('\\u0001'.repeat(5e7)).length;"
        json_indents "TMEo" "let a = []; for (let i = 0; i < 3000; i++) a = [a]; return JSON.stringify(a, null, '          ').length;"
        json_wide "TMES" "return new Array(1e7).fill({ a: 1 });"
        index_of_quadratic "T" "const s = 'a'.repeat(2e6); for (;;) s.indexOf('a'.repeat(1e6) + 'b');"
        compare_long "T" "const a = 'x'.repeat(1e7) + 'a', b = 'x'.repeat(1e7) + 'b'; for (;;) a.localeCompare(b);"
        base64_long "TME" "return btoa('x'.repeat(2e8)).length;"
        from_char_codes "TME" "return String.fromCharCode(...new Array(1e7).fill(97)).length;"
        template_grows "TME" "let s = 'x'; for (;;) s = `${s}${s}${s.length}`;"
        keys_interned "TM" "const o = {}; for (let i = 0; ; i++) o['k'.repeat(100) + i] = 1;"
        well_formed "TME" "for (;;) '\\ud800'.repeat(5e7).toWellFormed();"
        url_long "TMEo" "return new URL('https://a.test/' + 'é'.repeat(2e7)).href.length;"
        search_params "TM" "const p = new URLSearchParams(); for (let i = 0; ; i++) p.append('k', 'v' + i);"
        result_string "S" "return 'x'.repeat(1e8);"
        log_flood "T" "for (;;) console.log('x'.repeat(1e5));"
    }
    Buffers {
        array_buffer_huge "E" "return new ArrayBuffer(2 ** 33).byteLength;"
        typed_huge "E" "return new Uint8Array(1e9).length;"
        typed_filled "MEo" "return new Uint8Array(230e6).fill(1).length;"
        typed_kept "ME" "const all = []; for (;;) all.push(new Uint8Array(16e6).fill(1));"
        typed_kept_small "TME" "const all = []; for (;;) all.push(new Uint8Array(1000).fill(1));"
        typed_sorted "T" "const a = new Float64Array(8e6); for (;;) { crypto.getRandomValues(new Uint8Array(a.buffer, 0, 65536)); a.sort(); }"
        typed_sorted_by "T" "for (;;) { const a = new Uint32Array(1e6).map((_, i) => i * 2654435761); a.sort((x, y) => x - y); }"
        resizable "TME" "const b = new ArrayBuffer(0, { maxByteLength: 2e8 }); const all = []; for (;;) { b.resize(2e8); new Uint8Array(b).fill(1); all.push(b.slice()); }"
        transfers "T" "let b = new ArrayBuffer(1e6); for (;;) b = b.transfer(b.byteLength === 1e6 ? 2e6 : 1e6);"
        fill_arrays "TM" "const all = []; for (;;) all.push(new Array(3e6).fill({}));"
        clone_large "TME" "const all = []; const b = new Uint8Array(2e7); for (;;) all.push(structuredClone(b));"
        blob_grows "TME" "let b = new Blob(['x'.repeat(1e6)]); for (;;) { b = new Blob([b, b]); await b.arrayBuffer(); }"
        response_tee "TME" "let r = new Response(new Uint8Array(3e7)); const all = []; for (;;) { all.push(r.clone()); await all.at(-1).arrayBuffer().then((b) => all.push(b)); }"
        stream_enqueues "TME" "const s = new ReadableStream({ start(c) { for (;;) c.enqueue(new Uint8Array(1e6).fill(1)); } }); return s.locked;"
        random_flood "T" "const b = new Uint8Array(65536); for (;;) crypto.getRandomValues(b);"
        digest_flood "TE" "const b = new Uint8Array(1e7); for (;;) await crypto.subtle.digest('SHA-512', b);"
        decoder_flood "TME" "const all = []; const d = new TextDecoder('shift_jis'); for (;;) all.push(d.decode(new Uint8Array(1e7)));"
        encoder_flood "TME" "const all = []; for (;;) all.push(new TextEncoder().encode('é'.repeat(5e6)));"
        form_flood "TM" "const f = new FormData(); for (let i = 0; ; i++) f.append('k' + i, 'v'.repeat(100));"
        form_encode "TMEo" "const f = new FormData(); f.append('a', new Blob([new Uint8Array(6e7)])); return (await new Response(f).arrayBuffer()).byteLength;"
        headers_flood "TM" "const h = new Headers(); for (let i = 0; ; i++) h.append('k' + i, 'v');"
        dataview_flood "TME" "const all = []; for (;;) all.push(new DataView(new ArrayBuffer(1e5)));"
        atob_flood "TME" "const s = btoa('x'.repeat(3e6)); const all = []; for (;;) all.push(atob(s));"
    }
    Floods {
        objects "TM" "const all = []; for (;;) all.push({ a: [all.length, {}] });"
        arrays "TM" "const all = []; for (;;) all.push(new Array(1000).fill(all));"
        map_grows "TM" "const m = new Map(); for (let i = 0; ; i++) m.set(i, i);"
        set_grows "TM" "const s = new Set(); for (let i = 0; ; i++) s.add(i);"
        weak_map_grows "TM" "const m = new WeakMap(), all = []; for (;;) { const k = {}; all.push(k); m.set(k, k); }"
        symbols "TM" "const all = []; for (let i = 0; ; i++) all.push(Symbol('s'.repeat(50) + i));"
        symbol_registry "TM" "for (let i = 0; ; i++) Symbol.for('s'.repeat(50) + i);"
        closures "TM" "const all = []; for (;;) { const x = {}; all.push(() => x); }"
        promises "TM" "const all = []; for (;;) all.push(new Promise(() => {}));"
        microtasks "TM" "for (;;) Promise.resolve().then(() => {});"
        microtasks_breed "TM" "const breed = () => { queueMicrotask(breed); queueMicrotask(breed); }; breed(); await new Promise(() => {});"
        rejections "TME" "for (;;) Promise.reject(1);"
        timers "TM" "for (;;) setTimeout(() => {}, 1e6);"
        timers_breed "TM" "const breed = () => { setTimeout(breed, 0); setTimeout(breed, 0); }; breed(); await new Promise(() => {});"
        errors "TM" "const all = []; for (;;) all.push(new Error('e'));"
        proxies "TM" "const all = []; for (;;) all.push(new Proxy({}, {}));"
        classes "TM" "const all = []; for (;;) all.push(class { #a = 1; static b = 2; });"
        generators "TM" "const all = []; function* g() { yield; } for (;;) { const it = g(); it.next(); all.push(it); }"
        async_functions "TM" "const all = []; const f = async () => { await new Promise(() => {}); }; for (;;) all.push(f());"
        many_keys "TM" "const o = {}; for (let i = 0; ; i++) o['k' + i] = i;"
        defined_keys "TM" "const o = {}; for (let i = 0; ; i++) Object.defineProperty(o, 'k' + i, { get: () => i });"
        weak_refs "TM" "const all = []; for (;;) all.push(new WeakRef({}));"
        finalizers "TM" "const r = new FinalizationRegistry(() => {}); for (;;) r.register({}, 1);"
        dates "TM" "const all = []; for (;;) all.push(new Date());"
        listeners "TM" "const t = new EventTarget(); for (;;) t.addEventListener('a', () => {});"
        signals "TM" "const all = []; for (;;) all.push(AbortSignal.any([new AbortController().signal, ...all.slice(-2)]));"
        fetches_kept "TMD" "const all = []; for (;;) all.push(ctx.fetch('/x').catch(() => {}));"
        unhandled_fetches "TMDE" "for (;;) ctx.fetch('/x', { method: 'NOPE' });"
        urls "TM" "const all = []; for (;;) all.push(new URL('https://a.test/' + all.length));"
        blobs "TM" "const all = []; for (;;) all.push(new Blob(['x'.repeat(1e4)]));"
        streams_kept "TM" "const all = []; for (;;) all.push(new TransformStream());"
        decoders "TME" "const all = []; for (;;) all.push(new TextDecoder('utf-16le'));"
    }
    Depth {
        recursion "E" "const f = () => f() + 1; return f();"
        mutual "E" "const f = () => g() + 1, g = () => f() + 1; return f();"
        getter_recursion "E" "const o = { get a() { return this.a; } }; return o.a;"
        constructor_recursion "E" "class A { constructor() { new A(); } } new A();"
        async_recursion "TME" "const f = async () => { await f(); }; await f();"
        deep_prototypes "TMEo" "let o = {}; for (let i = 0; i < 1e6; i++) o = Object.create(o); for (let i = 0; i < 1e3; i++) o.missing;"
        deep_proxies "E" "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return p.x;"
        deep_bound "TEo" "let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(); return f();"
        deep_array_text "E" "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return String(a);"
        deep_array_flat "E" "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a.flat(Infinity);"
        deep_json_out "Eo" "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return JSON.stringify(a);"
        deep_json_in "Eo" "JSON.parse('['.repeat(1e5) + ']'.repeat(1e5)); return 1;"
        deep_json_result "E" "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a;"
        deep_clone "E" "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; structuredClone(a);"
        deep_cause "E" "let e = new Error('x'); for (let i = 0; i < 1e4; i++) e = new Error('x', { cause: e }); throw e;"
        deep_log "o" "let a = {}; for (let i = 0; i < 1e5; i++) a = { a }; console.log(a); return 1;"
        deep_promises "TMo" "let p = Promise.resolve(1); for (let i = 0; i < 3e4; i++) { const q = p; p = new Promise((r) => r(q)); } return await p;"
        deep_cons "oTM" "let s = ''; for (let i = 0; i < 3e5; i++) s = 'a' + s; return s.at(-1);"
        deep_yield_star "TE" "function* g(n) { if (n > 0) yield* g(n - 1); yield n; } for (const _ of g(1e5));"
        deep_regexp "TEo" "return /^(?:a|b)*$/.test('ab'.repeat(1e6));"
        deep_spread "TE" "const f = (...a) => f(...a, 1); f();"
        deep_sort "E" "const a = [2, 1]; a.sort(function s() { return a.toSorted(s).length; });"
        deep_to_primitive "E" "const o = { [Symbol.toPrimitive]() { return +o; } }; return +o;"
        deep_reviver "E" "JSON.parse('[1]', function r(k, v) { return JSON.parse('[1]', r); });"
        deep_replace "E" "const f = () => 'a'.replace(/a/, f); f();"
        deep_iterator "TE" "let it = [1].values(); for (let i = 0; i < 1e5; i++) it = it.map((x) => x); return it.next();"
    }
    Hooks {
        value_of "T" "return +{ valueOf() { for (;;); } };"
        to_string "T" "return `${{ toString() { for (;;); } }}`;"
        to_json "T" "return { toJSON() { for (;;); } };"
        getter_in_result "T" "return { get a() { for (;;); } };"
        proxy_in_result "TE" "return new Proxy({}, { ownKeys() { for (;;); } });"
        proxy_length "ETM" "return new Proxy([], { get: (t, k) => k === 'length' ? 2 ** 32 - 1 : 0 });"
        thenable "T" "return { then() { for (;;); } };"
        thenable_chain "T" "const next = () => ({ then: (r) => r(next()) }); return next();"
        thrown_message "T" "throw Object.defineProperty(new Error('x'), 'message', { get() { for (;;); } });"
        thrown_name "T" "throw Object.defineProperty(new Error('x'), 'name', { get() { for (;;); } });"
        thrown_stack "T" "throw Object.defineProperty(new Error('x'), 'stack', { get() { for (;;); } });"
        thrown_prototype "TE" "throw Object.setPrototypeOf(new Error('x'), new Proxy({}, { get() { for (;;); } }));"
        rejected_later "T" "Promise.reject(Object.defineProperty(new Error('x'), 'message', { get() { for (;;); } })); await new Promise(() => {});"
        prepare_stack "oE" "Error.prepareStackTrace = () => { for (;;); }; return new Error('x').stack;"
        stack_name "T" "const e = {}; Object.defineProperty(e, 'name', { get() { for (;;); } }); Error.captureStackTrace(e); return e.stack;"
        species "T" "class A extends Array { static get [Symbol.species]() { for (;;); } } return new A(3).map((x) => x);"
        has_instance "T" "return 1 instanceof { [Symbol.hasInstance]() { for (;;); } };"
        iterator_of_headers "T" "return new Headers({ [Symbol.iterator]() { for (;;); } });"
        getter_in_init "E" "return await ctx.fetch('/x', { get method() { for (;;); } });"
        getter_in_sdk_init "T" "return await fetch(ctx.proxyBase, { get method() { for (;;); } });"
        text_of_a_header "T" "return new Headers([['a', { toString() { for (;;); } }]]);"
        text_of_a_body "TE" "return new Response({ toString() { for (;;); } });"
        logged_getter "o" "console.log({ get a() { for (;;); } }); return 1;"
        logged_proxy "o" "console.log(new Proxy({}, { get() { for (;;); } })); return 1;"
        clone_getter "T" "return structuredClone({ get a() { for (;;); } });"
        event_listener "T" "const t = new EventTarget(); t.addEventListener('a', { handleEvent() { for (;;); } }); t.dispatchEvent(new Event('a'));"
        stream_source "T" "return new ReadableStream({ get start() { for (;;); } });"
        queue_size "T" "const s = new ReadableStream({ start(c) { c.enqueue(1); } }, { size() { for (;;); } }); return s.locked;"
        signal_reason "T" "const c = new AbortController(); c.abort({ get name() { for (;;); }, get message() { for (;;); } }); return await ctx.fetch('/x', { signal: c.signal });"
    }
}
