//! JSON text as `JSON.stringify` makes it, brought to what every reader takes.

/// JSON text whose lone surrogate escapes are U+FFFD, which every reader of
/// JSON takes. `JSON.stringify` escapes exactly the lone ones.
pub(crate) fn well_formed(json: String) -> String {
    if !json.contains("\\ud") {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at..];
        let lone = escape.starts_with("\\ud") && escape.is_char_boundary(6);
        if lone {
            out.push_str("\\ufffd");
            rest = &escape[6..];
        } else {
            // The backslash and what it escapes, which is one character.
            let end = escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end);
            out.push_str(&escape[..end]);
            rest = &escape[end..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s25_lone_surrogates_become_replacement_characters() {
        for (given, expected) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#""\ud800""#, r#""\ufffd""#),
            (r#""a\udfffb\ud83d""#, r#""a\ufffdb\ufffd""#),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\\\ud800\n""#, r#""\\\ufffd\n""#),
        ] {
            assert_eq!(well_formed(given.to_owned()), expected);
        }
    }
}
