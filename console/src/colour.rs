//! Colours of a module's source: comments, texts, numbers and keywords, found
//! by a small reader that never fails and never loses a character. It only
//! chooses classes; what it hands out is escaped where it is written.

/// A piece of source and the class it is shown in; empty for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) class: &'static str,
    pub(crate) text: String,
}

/// Words of the language.
const KEYWORDS: &[&str] = &[
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "from",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "of",
    "return",
    "satisfies",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "yield",
];

/// Cuts a source into pieces; together they are the source again.
pub(crate) fn pieces(source: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (class, length) = piece(rest, first);
        let (text, after) = rest.split_at(length);
        match pieces.last_mut() {
            Some(last) if last.class == class => last.text.push_str(text),
            _ => pieces.push(Piece { class, text: text.to_owned() }),
        }
        rest = after;
    }
    pieces
}

/// The class of what begins here, and its length in bytes, never 0.
fn piece(rest: &str, first: char) -> (&'static str, usize) {
    if rest.starts_with("//") {
        return ("t-comment", rest.find('\n').unwrap_or(rest.len()));
    }
    if let Some(inner) = rest.strip_prefix("/*") {
        return ("t-comment", inner.find("*/").map_or(rest.len(), |at| at + 4));
    }
    match first {
        '"' | '\'' | '`' => ("t-text", quoted(rest, first)),
        '0'..='9' => ("t-number", run(rest, |c| c.is_ascii_alphanumeric() || c == '_' || c == '.')),
        c if is_word(c) => {
            let length = run(rest, is_word);
            let class = if KEYWORDS.contains(&&rest[..length]) { "t-keyword" } else { "" };
            (class, length)
        }
        c => ("", c.len_utf8()),
    }
}

/// To the closing quote; a plain text ends with its line.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' if quote != '`' => return at,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn run(rest: &str, is_part: impl Fn(char) -> bool) -> usize {
    rest.find(|c| !is_part(c)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(source: &str) -> Vec<(&'static str, String)> {
        let pieces = pieces(source);
        let whole: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(whole, source, "nothing is lost");
        pieces.into_iter().filter(|p| !p.class.is_empty()).map(|p| (p.class, p.text)).collect()
    }

    #[test]
    fn comments_texts_numbers_and_keywords_have_their_class() {
        let found = classes("const a = 'x\\'y'; // end\n/* more\n */ return `a\nb` + 1_0.5e3;");
        let expected = [
            ("t-keyword", "const"),
            ("t-text", "'x\\'y'"),
            ("t-comment", "// end"),
            ("t-comment", "/* more\n */"),
            ("t-keyword", "return"),
            ("t-text", "`a\nb`"),
            ("t-number", "1_0.5e3"),
        ];
        assert_eq!(found, expected.map(|(class, text)| (class, text.to_owned())));
    }

    #[test]
    fn any_source_is_cut_without_a_loss() {
        for source in
            ["", "\"", "'a\nb'", "/*", "//", "`", "\\", "é\u{202e}\"ü", "constant $1", "/**/"]
        {
            classes(source);
        }
        assert_eq!(classes("constant"), []);
        assert_eq!(classes("\"</script>\""), [("t-text", "\"</script>\"".to_owned())]);
    }
}
