//! The redactor over whole texts, and over every way to cut them.
#![allow(clippy::unwrap_used)]

use super::*;

const SECRET: &[u8] = b"sk_live_S3CRET/+&\"0123";

fn hide(secret: &[u8], text: &[u8], size: usize) -> (String, u32) {
    let redactor = Redactor::new(&[secret], "acme");
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    for chunk in text.chunks(size) {
        out.extend_from_slice(&stream.push(Bytes::copy_from_slice(chunk)));
    }
    out.extend_from_slice(&stream.finish());
    (String::from_utf8_lossy(&out).into_owned(), stream.redactions())
}

#[test]
fn h2_h3_every_form_at_every_cut() {
    for form in forms(SECRET) {
        let text = [b"before ".as_slice(), &form, b" between ", &form, b" after"].concat();
        for size in 1..text.len() {
            let (out, count) = hide(SECRET, &text, size);
            assert_eq!(
                out,
                "before [REDACTED:acme] between [REDACTED:acme] after",
                "{} by {size}",
                String::from_utf8_lossy(&form)
            );
            assert_eq!(count, 2);
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
    let text = b"sk_live_S3CRET/+&\"012 and more of the same kind".as_slice();
    assert_eq!(hide(SECRET, text, 5), (String::from_utf8_lossy(text).into_owned(), 0));
    assert_eq!(hide(b"short", b"a short text", 3).0, "a short text");
    let none = Redactor::none();
    assert_eq!(none.text("anything"), ("anything".to_owned(), 0));
}
