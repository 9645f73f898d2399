//! What a search for a leaked secret looks for. Made here anew, so that what
//! hides secrets is not its own judge.

use base64::Engine;

/// A text as a lax reader has it, who decodes whatever looks escaped, twice.
pub(crate) fn decoded(bytes: &[u8]) -> Vec<u8> {
    let number = |digits: &[u8], radix| {
        let digits = std::str::from_utf8(digits).ok()?;
        u8::from_str_radix(digits, radix).ok()
    };
    let escape = |rest: &[u8]| match rest {
        [b'\\', b'u', digits @ ..] => Some((number(digits.get(..4)?, 16)?, 6)),
        [b'%', digits @ ..] => Some((number(digits.get(..2)?, 16)?, 3)),
        [b'&', b'#', b'x', digits @ ..] => {
            let end = digits.iter().position(|byte| *byte == b';')?;
            Some((number(&digits[..end], 16)?, end + 4))
        }
        [b'&', b'#', digits @ ..] => {
            let end = digits.iter().position(|byte| *byte == b';')?;
            Some((number(&digits[..end], 10)?, end + 3))
        }
        [b'\\', byte, ..] => Some((*byte, 2)),
        _ => None,
    };
    let mut text = bytes.to_vec();
    for _ in 0..2 {
        let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
        while at < text.len() {
            let (byte, length) = escape(&text[at..]).unwrap_or((text[at], 1));
            out.push(byte);
            at += length;
        }
        text = out;
    }
    text
}

/// The forms of row H3, made here anew so that the redactor's own list is not
/// its judge.
pub fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![secret.to_vec()];
    let text = |write: &dyn Fn(u8) -> String| secret.iter().map(|b| write(*b)).collect::<String>();
    forms.push(text(&|b| format!("{b:02x}")).into_bytes());
    forms.push(text(&|b| format!("{b:02X}")).into_bytes());
    forms.push(text(&|b| format!("%{b:02x}")).into_bytes());
    forms.push(text(&|b| format!("%{b:02X}")).into_bytes());
    forms.push(text(&|b| format!("\\u{b:04x}")).into_bytes());
    forms.push(text(&|b| format!("\\u{b:04X}")).into_bytes());
    forms.push(text(&|b| format!("&#x{b:x};")).into_bytes());
    forms.push(text(&|b| format!("&#{b};")).into_bytes());
    let mixed = |b: u8| {
        if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") }
    };
    forms.push(text(&mixed).into_bytes());
    for shift in 0..3 {
        let padded = [&b"xx"[..shift], secret, b"yy"].concat();
        // Letters that depend on the neighbours are not the secret's.
        let (from, to) = ([0, 2, 3][shift], (shift + secret.len()) * 8 / 6);
        let standard = base64::engine::general_purpose::STANDARD.encode(&padded);
        let url = base64::engine::general_purpose::URL_SAFE.encode(&padded);
        forms.push(standard.as_bytes()[from..to].to_vec());
        forms.push(url.as_bytes()[from..to].to_vec());
    }
    forms
}
