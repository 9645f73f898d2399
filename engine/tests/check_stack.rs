//! Sources made to run the parser out of stack or time (sandbox row 54). Each
//! is as large as the bounds allow, so none may end the process.
#![allow(clippy::unwrap_used)]

use cambium_engine::check_module;

/// One construct, repeated until the bounds are reached.
fn deep(open: &str, middle: &str, close: &str, times: usize) -> String {
    format!("{}{middle}{}", open.repeat(times), close.repeat(times))
}

#[test]
fn s54_every_construct_that_nests_ends_in_a_report() {
    let rows: &[(&str, &str, &str, &str)] = &[
        ("parenthesis", "(", "1", ")"),
        ("array", "[", "1", "]"),
        ("block", "{", "", "}"),
        ("object", "({a:", "1", "})"),
        ("template", "`${", "1", "}`"),
        ("call", "f(", "1", ")"),
        ("arrow", "x=>", "1", ""),
        ("arrow with parentheses", "(x)=>", "1", ""),
        ("async arrow", "async x=>", "1", ""),
        ("not", "!", "1", ""),
        ("minus", "- ", "1", ""),
        ("typeof", "typeof ", "1", ""),
        ("await", "await ", "1", ""),
        ("new", "new ", "x", ""),
        ("conditional", "a?b:", "1", ""),
        ("conditional inside", "a?", "1", ":b"),
        ("power", "a**", "1", ""),
        ("assignment", "a=", "1", ""),
        ("plus", "a+", "1", ""),
        ("and", "a&&", "1", ""),
        ("coalesce", "a??", "1", ""),
        ("comma", "a,", "1", ""),
        ("member", "", "a", ".b"),
        ("computed member", "", "a", "[0]"),
        ("optional member", "", "a", "?.b"),
        ("call chain", "", "a", "()"),
        ("tagged chain", "", "a", "``"),
        ("non-null", "", "a", "!"),
        ("as", "", "a", " as b"),
        ("if", "if(a)", ";", ""),
        ("else if", "if(a);else ", ";", ""),
        ("for", "for(;;)", ";", ""),
        ("while", "while(a)", ";", ""),
        ("do", "do ", ";", " while(a);"),
        ("label", "a:", ";", ""),
        ("class", "(class extends ", "a", "{})"),
        ("class chain", "class a extends ", "a", "{}"),
        ("array type", "type T=", "a", "[]"),
        ("function type", "type T=", "a", "=>a"),
        ("generic", "a<", "b", ">"),
        ("generic type", "let a:", "b<", ""),
        ("type argument", "let a: a<", "b", ">"),
        ("less", "a<", "1", ""),
        ("shift", "a<<", "1", ""),
        ("type query", "type A= keyof ", "a", ""),
        ("conditional type", "type A=a extends b?c:", "d", ""),
        ("function", "function f(){", "", "}"),
        ("function parameter", "(a=", "1", ")=>1"),
        ("arrow parameter", "((", "a", ")=>1)"),
        ("destructuring", "[{a:", "b", "}]=1"),
        ("async call", "async(", "a", ")"),
        ("async call arrow", "async(", "a", ")=>1"),
        ("generic arrow", "<T>(", "a", ")=>1"),
        ("regular expression", "/(", "a", ")/"),
        ("keyof chain", "keyof ", "a", ""),
    ];
    for (name, open, middle, close) in rows {
        for times in [150, 1_500, 14_000, 59_990] {
            let report = check_module(&deep(open, middle, close, times));
            assert!(!report.ok, "{name} {times}");
            assert_ne!(report.diagnostics[0].code, "check_failed", "{name} {times}");
        }
    }
}
