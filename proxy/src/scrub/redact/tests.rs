//! The redactor over whole texts, over every way to cut them, and over what
//! encoders make of some of a secret's characters.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::scrub::readings;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

const SECRET: &[u8] = b"sk_live_S3CRET/+&\"0123==";

fn hide_with(redactor: &Redactor, text: &[u8], size: usize) -> (String, u32) {
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    for chunk in text.chunks(size) {
        out.extend_from_slice(&stream.push(Bytes::copy_from_slice(chunk)));
    }
    out.extend_from_slice(&stream.finish());
    (String::from_utf8_lossy(&out).into_owned(), stream.redactions())
}

fn hide(secret: &[u8], text: &[u8], size: usize) -> (String, u32) {
    hide_with(&Redactor::new(&[secret], "acme"), text, size)
}

type Writer = (&'static str, fn(u8) -> String);

/// How a careful, careless or nested writer puts one byte.
const WRITERS: &[Writer] = &[
    ("JSON", |b| format!("\\u{b:04x}")),
    ("JSON, upper", |b| format!("\\u{b:04X}")),
    ("JavaScript", |b| format!("\\x{b:02x}")),
    ("JavaScript, braces", |b| format!("\\u{{{b:x}}}")),
    ("octal", |b| format!("\\{b:03o}")),
    ("backslash", |b| format!("\\{}", char::from(b))),
    ("percent", |b| format!("%{b:02X}")),
    ("percent, lower", |b| format!("%{b:02x}")),
    ("percent-u", |b| format!("%u{b:04x}")),
    ("HTML, decimal", |b| format!("&#{b};")),
    ("HTML, zeros", |b| format!("&#{b:07};")),
    ("HTML, hex", |b| format!("&#x{b:x};")),
    ("HTML, upper hex", |b| format!("&#X{b:X};")),
    ("JSON in JSON", |b| format!("\\\\u{b:04x}")),
    ("JSON in JSON in JSON", |b| format!("\\\\\\\\u{b:04x}")),
    ("percent twice", |b| format!("%25{b:02x}")),
    ("percent three times", |b| format!("%2525{b:02X}")),
    ("HTML twice", |b| format!("&amp;#{b};")),
    ("HTML three times", |b| format!("&amp;amp;#{b};")),
    ("percent in JSON", |b| format!("\\u0025{b:02x}")),
    ("percent in HTML", |b| format!("&percnt;{b:02x}")),
    ("JSON in percent", |b| format!("%5Cu{b:04x}")),
    ("HTML in JSON", |b| format!("\\u0026#{b};")),
    ("all of a percent escape in JSON", |b| {
        format!("%{b:02x}").bytes().map(|b| format!("\\u{b:04x}")).collect()
    }),
    ("all of that in JSON again", |b| {
        format!("%{b:02x}").bytes().map(|b| format!("\\\\u{b:04x}")).collect()
    }),
];

/// Writes the bytes a subset names one way, the others as they are.
fn written(needle: &[u8], writer: fn(u8) -> String, chosen: impl Fn(usize) -> bool) -> String {
    let one = |(at, byte): (usize, &u8)| {
        if chosen(at) { writer(*byte) } else { char::from(*byte).to_string() }
    };
    needle.iter().enumerate().map(one).collect()
}

/// Base64 and hex of a secret, made here anew, without what depends on its neighbours.
fn encoded(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![secret.to_vec()];
    for shift in 0..3 {
        let padded = [&b"xx"[..shift], secret, b"yy"].concat();
        let (from, to) = ([0, 2, 3][shift], (shift + secret.len()) * 8 / 6);
        for text in [STANDARD.encode(&padded), URL_SAFE.encode(&padded)] {
            all.push(text.as_bytes()[from..to].to_vec());
        }
    }
    all.push(secret.iter().map(|b| format!("{b:02x}")).collect::<String>().into_bytes());
    all.push(secret.iter().map(|b| format!("{b:02X}")).collect::<String>().into_bytes());
    all
}

#[test]
fn h2_h3_every_form_at_every_cut() {
    let redactor = Redactor::new(&[SECRET], "acme");
    for (form, _) in redactor.needles() {
        let text = [b"before ".as_slice(), form, b" between ", form, b" after"].concat();
        for size in 1..text.len() {
            let (out, count) = hide_with(&redactor, &text, size);
            assert_eq!(
                out,
                "before [REDACTED:acme] between [REDACTED:acme] after",
                "{} by {size}",
                String::from_utf8_lossy(form)
            );
            assert_eq!(count, 2);
        }
    }
}

#[test]
fn h3_any_choice_of_characters_in_any_escape() {
    let redactor = Redactor::new(&[SECRET], "acme");
    for needle in encoded(SECRET) {
        let last = needle.len() - 1;
        let mut subsets: Vec<Box<dyn Fn(usize) -> bool>> = (0..=last)
            .map(|one| Box::new(move |at| at == one) as Box<dyn Fn(usize) -> bool>)
            .collect();
        subsets.push(Box::new(|_| true));
        subsets.push(Box::new(|at| at % 2 == 0));
        subsets.push(Box::new(|at| at % 3 == 1));
        subsets.push(Box::new(move |at| at == 0 || at == last));
        subsets.push(Box::new(move |at| at > last / 2));
        for (name, writer) in WRITERS {
            for (number, subset) in subsets.iter().enumerate() {
                let form = written(&needle, *writer, subset);
                for (before, after) in
                    [("", ""), ("{\"a\":\"", "\"}"), ("x=", "&y=1"), ("a ", " b")]
                {
                    let text = format!("{before}{form}{after}");
                    for size in [1, 7, text.len()] {
                        let (out, count) = hide_with(&redactor, text.as_bytes(), size);
                        let wanted = format!("{before}[REDACTED:acme]{after}");
                        assert_eq!((out, count), (wanted, 1), "{name}, {number}: {text} by {size}");
                    }
                }
            }
        }
    }
}

#[test]
fn h3_names_of_html_with_and_without_their_end() {
    let secret = b"a<b>c&d\"e'f=g/h+i";
    for text in [
        "a&lt;b&gt;c&amp;d&quot;e&apos;f&equals;g&sol;h&plus;i",
        "a&ltb&gtc&ampd&quote&#39f&#61g&#47h&#43i",
        "a&LT;b>c&AMP;d&QUOT;e&#x27;f=g/h+i",
        "a&amp;lt;b&amp;gt;c&amp;amp;d&amp;quot;e&amp;#39;f=g/h+i",
    ] {
        assert_eq!(hide(secret, text.as_bytes(), 3), ("[REDACTED:acme]".to_owned(), 1), "{text}");
    }
}

#[test]
fn h3_a_space_as_forms_write_it() {
    for text in ["correct horse battery", "correct+horse%20battery", "correct&#32;horse+battery"] {
        assert_eq!(hide(b"correct horse battery", text.as_bytes(), 2).0, "[REDACTED:acme]");
    }
}

#[test]
fn h3_what_stands_before_it_takes_nothing_of_it() {
    // The first letters of each could end an escape that is not one.
    for secret in
        ["u003dabcdefgh", "3dabcdefgh", "bear=token", "lt;abcdefgh", "#61;abcdefgh", "041abcdef"]
    {
        for before in ["\\", "%", "&", "\\\\", "%2", "&#", "\\u00", "%25", "&amp;"] {
            let half = written(secret.as_bytes(), |b| format!("\\u{b:04x}"), |at| at == 5);
            for form in [secret, &half] {
                let text = format!("x{before}{form}y");
                let (out, _) = hide(secret.as_bytes(), text.as_bytes(), 3);
                assert!(out.contains("[REDACTED:acme]") && out.ends_with('y'), "{text}: {out}");
            }
        }
    }
}

#[test]
fn a_secret_that_overlaps_itself_leaves_no_rest() {
    let text = [b"<".as_slice(), &[b'a'; 1_000], b">"].concat();
    for size in [1, 7, 8, 9, 999, 2_000] {
        let (out, _) = hide(b"aaaaaaaa", &text, size);
        assert!(out.starts_with('<') && out.ends_with('>') && !out.contains("aa"), "{out}");
    }
}

#[test]
fn innocent_text_is_untouched() {
    for text in [
        "sk_live_S3CRET/+&\"0123= and more of the same kind",
        "{\"a\":\"b\\u003dc\\n\\\"d\\\"\",\"e\":\"%20%3d&amp;&#61; 100% & more\\\\\"}",
        "\\\\\\\\ %% && ++ \\u %u &# &#x; \\x",
    ] {
        for size in [1, 5, 200] {
            assert_eq!(hide(SECRET, text.as_bytes(), size), (text.to_owned(), 0));
        }
    }
    assert_eq!(hide(b"short", b"a short text", 3).0, "a short text");
    let none = Redactor::none();
    assert_eq!(none.text("anything"), ("anything".to_owned(), 0));
}

#[test]
fn h3_a_text_made_slow_to_search_is_hidden_and_not_searched_on() {
    let slow = "\\a".repeat(100_000);
    let secret = [&[b'a'; 64][..], b"b"].concat();
    let (out, count) = hide(&secret, slow.as_bytes(), 64 * 1024);
    assert!(count == 1 && out.ends_with("[REDACTED:acme]") && out.len() < slow.len());
    // What honest writers make, densely, stays far below what a byte pays for.
    for word in ["\\n\\\"", "\\u00e9", "%20%2F", "&nbsp;&quot;", "\\\\u00e9", "\\\\\\\"", "%252F"] {
        let text = word.repeat(20);
        let leads =
            (0..text.len()).filter(|at| matches!(text.as_bytes()[*at], b'\\' | b'%' | b'&'));
        let looks: usize = leads.map(|at| readings(text.as_bytes(), at).looks).sum();
        assert!(looks < 8 * text.len(), "{word}: {looks} for {}", text.len());
    }
}
