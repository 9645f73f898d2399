//! The readable text of a web page: words, headings, list points and the
//! addresses links lead to. Everything else, scripts first, is left out, and so
//! are characters a reader cannot see. A pure function over hostile bytes; the
//! root runs it in the jail.

use html5gum::{Token, Tokenizer};
use serde::{Deserialize, Serialize};

/// Longest text, characters; what a harness can take in at once.
pub(crate) const TEXT_CHARS: usize = 64_000;
/// Longest title, characters.
const TITLE_CHARS: usize = 300;
/// Longest address of a link that is kept, bytes.
const LINK_BYTES: usize = 300;

/// What is readable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readable {
    /// The page's title.
    pub title: String,
    /// Its text.
    pub text: String,
    /// There was more.
    pub cut: bool,
}

/// [`readable`] as the jail calls it: HTML in, JSON out.
pub fn readable_bytes(html: &[u8]) -> Vec<u8> {
    serde_json::to_vec(&readable(html)).unwrap_or_default()
}

/// Reads a page.
pub fn readable(html: &[u8]) -> Readable {
    let mut page = Page::default();
    for token in Tokenizer::new(html) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let link = tag.attributes.get(b"href".as_slice()).map(|value| value.to_vec());
                page.open(&tag.name, link, tag.self_closing);
            }
            Token::EndTag(tag) => page.close(&tag.name),
            Token::String(text) => page.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
        if page.full {
            break;
        }
    }
    let text = page.out.trim_end().to_owned();
    Readable { title: page.title.trim().to_owned(), text, cut: page.full }
}

/// Text of any kind without what cannot be seen, and its length held.
pub(crate) fn plain(text: &str) -> Readable {
    let mut seen = text.chars().filter(|c| matches!(c, '\n' | '\t') || is_visible(*c));
    let text: String = seen.by_ref().take(TEXT_CHARS).collect();
    Readable { title: String::new(), text, cut: seen.next().is_some() }
}

/// Neither a control character nor one that hides, reorders or carries text
/// unseen.
fn is_visible(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

#[derive(Default)]
struct Page {
    out: String,
    chars: usize,
    title: String,
    in_title: bool,
    /// The element whose content is left out, and how often it is nested.
    skipped: Option<(Vec<u8>, usize)>,
    /// Where the link under way leads.
    link: Option<String>,
    pre: usize,
    full: bool,
}

/// Elements whose content is not for reading.
const SKIPPED: [&[u8]; 9] = [
    b"script",
    b"style",
    b"noscript",
    b"template",
    b"svg",
    b"iframe",
    b"object",
    b"select",
    b"head",
];

impl Page {
    fn open(&mut self, name: &[u8], link: Option<Vec<u8>>, closed: bool) {
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name && !closed {
                *depth += 1;
            }
            // The head is left by the first thing that stands in a body.
            self.in_title = skipped == b"head" && name == b"title";
            if !(skipped == b"head" && name == b"body") {
                return;
            }
            self.skipped = None;
        }
        if SKIPPED.contains(&name) && !closed {
            self.skipped = Some((name.to_vec(), 1));
            return;
        }
        match name {
            b"title" => self.in_title = true,
            b"br" => self.line(1),
            b"li" => {
                self.line(1);
                self.push("- ");
            }
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => {
                self.line(2);
                let level = usize::from(name[1] - b'0');
                self.push(&format!("{} ", "#".repeat(level)));
            }
            b"pre" => {
                self.line(2);
                self.pre += 1;
            }
            b"td" | b"th" => self.push(" | "),
            b"a" => self.link = link.and_then(|link| String::from_utf8(link).ok()),
            name if is_block(name) => self.line(2),
            _ => {}
        }
    }

    fn close(&mut self, name: &[u8]) {
        if name == b"title" {
            self.in_title = false;
        }
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        match name {
            b"a" => {
                let link = self.link.take().unwrap_or_default();
                let link: String = link.trim().chars().filter(|c| is_visible(*c)).collect();
                let leads = link.starts_with("https://") || link.starts_with('/');
                if leads && link.len() <= LINK_BYTES {
                    self.push(&format!(" <{link}>"));
                }
            }
            b"pre" => {
                self.pre = self.pre.saturating_sub(1);
                self.line(2);
            }
            b"tr" => self.line(1),
            name if is_block(name) => self.line(2),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            let room = TITLE_CHARS.saturating_sub(self.title.chars().count());
            let seen = text.chars().filter(|c| is_visible(*c));
            self.title.extend(seen.take(room));
        }
        if self.in_title || self.skipped.is_some() {
            return;
        }
        if self.pre > 0 {
            self.push(text);
            return;
        }
        for (at, word) in text.split(char::is_whitespace).enumerate() {
            let spaced = self.out.is_empty() || self.out.ends_with(char::is_whitespace);
            if at > 0 && !spaced {
                self.push(" ");
            }
            self.push(word);
        }
    }

    /// Ends the line; two leave an empty one.
    fn line(&mut self, lines: usize) {
        let trimmed = self.out.trim_end_matches([' ', '\t']).len();
        self.out.truncate(trimmed);
        let there = self.out.bytes().rev().take_while(|byte| *byte == b'\n').count();
        if !self.out.is_empty() {
            self.push(&"\n".repeat(lines.saturating_sub(there)));
        }
    }

    fn push(&mut self, text: &str) {
        for c in text.chars().filter(|c| matches!(c, '\n' | '\t') || is_visible(*c)) {
            if self.chars == TEXT_CHARS {
                self.full = true;
                return;
            }
            self.out.push(c);
            self.chars += 1;
        }
    }
}

fn is_block(name: &[u8]) -> bool {
    matches!(
        name,
        b"p" | b"div"
            | b"section"
            | b"article"
            | b"header"
            | b"footer"
            | b"main"
            | b"nav"
            | b"aside"
            | b"ul"
            | b"ol"
            | b"dl"
            | b"dt"
            | b"dd"
            | b"table"
            | b"tr"
            | b"blockquote"
            | b"form"
            | b"figure"
            | b"hr"
            | b"h1"
            | b"h2"
            | b"h3"
            | b"h4"
            | b"h5"
            | b"h6"
            | b"fieldset"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_as_its_words_headings_and_links() {
        let page = readable(
            b"<!doctype html><html><head><title>The &amp; docs</title><style>p{}</style>\
              <script>alert(1)</script></head><body><h1>Orders</h1><p>List\n  them by \
              <a href='/v1/orders'>this call</a>.</p><ul><li>one<li>two</ul>\
              <pre>GET /v1\n  Host: x</pre><table><tr><td>a</td><td>b</td></tr></table></body>",
        );
        assert_eq!(page.title, "The & docs");
        assert_eq!(
            page.text,
            "# Orders\n\nList them by this call </v1/orders>.\n\n- one\n- two\n\nGET /v1\n  Host: x\
             \n\n | a | b"
        );
        assert!(!page.cut);
    }

    #[test]
    fn what_no_reader_sees_is_not_text() {
        let page = readable(
            "a<script>b</script><noscript>c</noscript><!-- d --><template><p>e</p></template>\
             <svg><text>f</text></svg>g\u{200b}\u{202e}\u{e0041}\u{feff}h&#8203;i\u{1b}[31m\
             <script>if (1</script >2)</script>"
                .as_bytes(),
        );
        assert_eq!(page.text, "aghi[31m2)");
        let page =
            readable(b"<a href='javascript:x'>j</a><a href='https://a.example/\xe2\x80\x8b'>k");
        assert_eq!(page.text, "jk");
    }

    #[test]
    fn any_bytes_have_an_end() {
        let deep = "<div><a href='x'>".repeat(50_000);
        assert!(readable(deep.as_bytes()).text.is_empty());
        let long = "<p>word ".repeat(100_000);
        let page = readable(long.as_bytes());
        assert!(page.cut && page.text.chars().count() <= TEXT_CHARS);
        for bytes in
            [&b"\xff\xfe<\x00p>\xc3"[..], b"<", b"<a", b"<a href", b"</", b"<!--", b"&#x110000;"]
        {
            readable(bytes);
        }
        assert!(plain(&"x".repeat(TEXT_CHARS + 1)).cut);
    }
}
