//! What a method does, from its bytes alone. `Method::is_safe` is not asked:
//! it holds TRACE and QUERY for safe. Read means byte-exact GET or HEAD.

use crate::{Effect, Refusal};

/// Longest method we send: the longest registered one has 17 letters.
const METHOD_BYTES: usize = 32;

/// The effect of a method, or why it is never sent.
pub(crate) fn effect(method: &str) -> Result<Effect, Refusal> {
    let refused = |why: &str| Err(Refusal::MethodInvalid(why.to_owned()));
    if method.is_empty() || method.len() > METHOD_BYTES {
        return refused("the method is empty or too long");
    }
    if !method.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-') {
        return refused("the method holds something else than upper-case letters");
    }
    match method {
        "GET" | "HEAD" => Ok(Effect::Read),
        "DELETE" => Ok(Effect::Destroy),
        // TRACE echoes the credential, CONNECT opens a tunnel around us.
        "TRACE" | "TRACK" | "CONNECT" => refused("TRACE, TRACK and CONNECT are never sent"),
        _ => Ok(Effect::Write),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn b1_b2_methods_have_one_reading() {
        for (method, expected) in [
            ("GET", Some(Effect::Read)),
            ("HEAD", Some(Effect::Read)),
            ("DELETE", Some(Effect::Destroy)),
            ("POST", Some(Effect::Write)),
            ("OPTIONS", Some(Effect::Write)),
            ("PROPFIND", Some(Effect::Write)),
            ("QUERY", Some(Effect::Write)),
            ("M-SEARCH", Some(Effect::Write)),
            ("get", None),
            ("GeT", None),
            ("delete", None),
            ("dElEtE", None),
            ("patch", None),
            ("TRACE", None),
            ("TRACK", None),
            ("CONNECT", None),
            ("G ET", None),
            ("GET\r\n", None),
            ("GET\0", None),
            ("", None),
            ("ＧＥＴ", None),
        ] {
            assert_eq!(effect(method).ok(), expected, "{method:?}");
        }
    }
}
