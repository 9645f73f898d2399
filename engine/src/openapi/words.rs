//! A vendor's text, made plain: without markup, control and invisible
//! characters, on one line, and no longer than asked.

/// The text on one line without markup.
pub(super) fn plain(text: &str) -> String {
    let text = without_links(&without_tags(text));
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let word: String = word.chars().filter(|c| !hides(*c) && !matches!(c, '`' | '*')).collect();
        if word.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&word);
    }
    out
}

/// [`plain`], at most this many characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    // Of a text of megabytes, only its beginning is worth reading.
    let text = &text[..text.floor_char_boundary(most.saturating_mul(16))];
    let text = plain(text);
    match text.char_indices().nth(most) {
        None => text,
        Some(_) => {
            let end = text.char_indices().nth(most.saturating_sub(1)).map_or(0, |(at, _)| at);
            format!("{}…", text[..end].trim_end())
        }
    }
}

/// A word of the caller's, repeated: whole but for what hides and what is long.
pub(super) fn repeated(text: &str) -> String {
    text.chars().filter(|c| !hides(*c)).take(60).collect()
}

/// Its first sentence, at most this many characters.
pub(super) fn first_sentence(text: &str, most: usize) -> String {
    let text = shortened(text, most.saturating_mul(4).max(most));
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    shortened(&text[..end], most)
}

fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        let inside = &rest[start + 1..];
        let tag = inside.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!');
        match inside.find('>').filter(|_| tag) {
            Some(end) => {
                out.push(' ');
                rest = &inside[end + 1..];
            }
            None => {
                out.push('<');
                rest = inside;
            }
        }
    }
    out.push_str(rest);
    out
}

/// `[text](address)` is its text.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let Some(end) = rest[middle..].find(')').map(|end| middle + end) else { break };
        match rest[..middle].rfind('[') {
            Some(start) => {
                out.push_str(&rest[..start]);
                out.push_str(&rest[start + 1..middle]);
            }
            None => out.push_str(&rest[..middle]),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

/// Characters that a reader does not see, or that change how others are seen.
fn hides(character: char) -> bool {
    character.is_control()
        || matches!(u32::from(character),
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
            | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f
            | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0xe0000..=0xe0fff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_what_hides_go_and_the_words_stay() {
        let text =
            "<p>Lists **all** `orders`\u{202e}.\n\nSee [the docs](https://x.example/a). a < b</p>";
        assert_eq!(plain(text), "Lists all orders. See the docs. a < b");
        assert_eq!(first_sentence(text, 80), "Lists all orders.");
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("", 4), "");
        assert_eq!(plain("a](b"), "a](b");
    }
}
