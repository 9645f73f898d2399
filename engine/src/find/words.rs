//! From text to words: split at what is no letter or digit and at camel humps,
//! lower case, light English stemming, and, for a query, the words that carry
//! nothing left out. The same text always makes the same words.

/// Bytes of one text that are read; a description is at most 500 characters.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// Characters of one word that are kept.
const WORD_MAX: usize = 48;

/// Words that say nothing about a tool. Verbs such as get, list and find are
/// not here: they tell one tool of a vendor from another.
#[rustfmt::skip]
const EMPTY: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "another", "any", "are", "around", "as",
    "at", "be", "because", "been", "before", "being", "best", "better", "both", "but", "by",
    "came", "can", "come", "could", "d", "did", "do", "does", "during", "each", "either", "else",
    "enough", "even", "ever", "every", "few", "first", "following", "for", "from", "give",
    "go", "going", "good", "got", "great", "had", "has", "have", "he", "hello", "help",
    "her", "here", "hey", "hi", "him", "his", "how", "hows", "i", "if", "im", "important",
    "in", "instead", "interested", "into", "is", "it", "its", "just", "keep", "kind",
    "know", "last", "let", "lets", "like", "ll", "look", "looking", "lot", "m", "made", "many",
    "may", "maybe", "me", "might", "mood", "more", "most", "much", "must", "my", "need",
    "new", "next", "no", "nor", "not", "now", "of", "off", "often", "ok", "okay", "on",
    "one", "only", "or", "other", "others", "our", "out", "over", "own", "per", "please",
    "possible", "quite", "rather", "re", "really", "regarding", "right", "s", "same", "say",
    "see", "seem", "she", "should", "since", "so", "some", "somebody", "someone",
    "something", "soon", "still", "such", "sure", "t", "take", "tell", "than", "thank",
    "thanks", "that", "the", "their", "them", "then", "there", "these", "they", "thing",
    "things", "think", "this", "through", "to", "too", "tool", "try", "trying", "two",
    "under", "until", "up", "upon", "us", "use", "using", "usually", "ve", "very", "via",
    "wanna", "want", "was", "way", "we", "well", "went", "were", "what", "whats", "when",
    "where", "which", "while", "who", "whom", "whose", "why", "will", "with", "within",
    "without", "wondering", "would", "yes", "yet", "you", "youd", "your", "yours",
];

/// Words of a name that do not say what a tool is about: what it does to it, and
/// how it is called.
#[rustfmt::skip]
const ACTS: &[&str] = &[
    "add", "all", "any", "api", "by", "calculate", "check", "create", "current", "data",
    "delete", "detail", "do", "edit", "execute", "fetch", "find", "for", "generate", "get",
    "handle", "id", "info", "information", "list", "lookup", "make", "manage", "name",
    "new", "query", "read", "remove", "retrieve", "run", "search", "send", "set", "show",
    "start", "tool", "type", "update", "use", "view", "write",
];

/// The words of a name that say what the tool is about, none twice. Numbers,
/// such as a version's, are not among them.
pub(super) fn subject(vendor: &str, name: &str) -> Vec<Box<str>> {
    let mut words: Vec<Box<str>> = tokens(vendor)
        .chain(tokens(name))
        .flat_map(humps)
        .map(lower)
        .filter(|word| !word.bytes().all(|b| b.is_ascii_digit()))
        .filter(|word| ACTS.binary_search(&plural(word).as_ref()).is_err())
        .map(|word| stem(&word))
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Every word of a tool's text, in order, repeats kept. A camel word counts
/// both whole and in its parts, so that `GitHub` is found as `github`.
pub(super) fn of_text(text: &str) -> Vec<Box<str>> {
    let mut words = Vec::new();
    for token in tokens(text) {
        let parts = humps(token);
        if parts.len() > 1 {
            words.push(stem(&lower(token)));
        }
        words.extend(parts.into_iter().map(|part| stem(&lower(part))));
    }
    words
}

/// The words of a query. A camel word is taken whole if the index knows it so,
/// else in its parts. If nothing but empty words is left, they count after all.
pub(super) fn of_query(query: &str, known: impl Fn(&str) -> bool) -> Vec<Box<str>> {
    let mut words = Vec::new();
    for token in tokens(query) {
        let parts = humps(token);
        let whole = lower(token);
        if parts.len() == 1 || known(&stem(&whole)) {
            words.push(whole);
        } else {
            words.extend(parts.into_iter().map(lower));
        }
    }
    let telling = |word: &String| EMPTY.binary_search(&word.as_str()).is_err();
    if words.iter().any(telling) {
        words.retain(telling);
    }
    words.iter().map(|word| stem(word)).collect()
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    text.split(|c: char| !c.is_alphanumeric()).filter(|token| !token.is_empty())
}

fn lower(token: &str) -> String {
    token.chars().take(WORD_MAX).flat_map(char::to_lowercase).collect()
}

/// `listOpenOrders` in three, `HTTPServer` in two. Ideographs, which are
/// written without spaces, each stand alone.
fn humps(token: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let chars: Vec<(usize, char)> = token.char_indices().collect();
    for pair in 1..chars.len() {
        let ((_, before), (at, here)) = (chars[pair - 1], chars[pair]);
        let next = chars.get(pair + 1).map(|(_, c)| *c);
        let rises = here.is_uppercase() && !before.is_uppercase();
        let acronym_ends =
            here.is_uppercase() && before.is_uppercase() && next.is_some_and(char::is_lowercase);
        if rises || acronym_ends || ideograph(before) || ideograph(here) {
            parts.push(&token[start..at]);
            start = at;
        }
    }
    parts.push(&token[start..]);
    parts
}

fn ideograph(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff)
}

/// Plurals, -ing, -ed, -ion and a final e go, no more: `orders` and `order`,
/// `create`, `creating` and `creation` become one word.
fn stem(word: &str) -> Box<str> {
    if !word.is_ascii() || word.len() < 4 {
        return plural(word).into();
    }
    let mut base = plural(word).into_owned();
    for suffix in ["ing", "ed"] {
        if let Some(rest) = base.strip_suffix(suffix)
            && rest.len() >= 3
            && rest.bytes().any(|b| b"aeiouy".contains(&b))
        {
            let twin = rest.as_bytes()[rest.len() - 1];
            let doubled = rest.as_bytes()[rest.len() - 2] == twin && !b"lsz".contains(&twin);
            base = rest[..rest.len() - usize::from(doubled)].to_owned();
            break;
        }
    }
    if let Some(rest) = base.strip_suffix("ion")
        && rest.len() >= 4
        && (rest.ends_with('t') || rest.ends_with('s'))
    {
        base = rest.to_owned();
    }
    if base.len() > 3 && base.ends_with('e') {
        base.pop();
    }
    if base.len() > 3 && base.ends_with('y') {
        base.pop();
        base.push('i');
    }
    base.into()
}

fn plural(word: &str) -> std::borrow::Cow<'_, str> {
    if !word.is_ascii() || word.len() < 4 {
        return word.into();
    }
    if let Some(rest) = word.strip_suffix("ies") {
        return if rest.len() > 1 { format!("{rest}y").into() } else { word.into() };
    }
    if let Some(rest) = word.strip_suffix("es")
        && ["ss", "x", "ch", "sh", "zz"].iter().any(|end| rest.ends_with(end))
    {
        return rest.into();
    }
    match word.strip_suffix('s') {
        Some(rest) if !["s", "u", "i"].iter().any(|end| rest.ends_with(end)) => rest.into(),
        _ => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        of_text(text).into_iter().map(String::from).collect()
    }

    #[test]
    fn the_empty_words_are_sorted_for_the_search_in_them() {
        assert!(EMPTY.is_sorted() && ACTS.is_sorted());
    }

    #[test]
    fn one_word_for_every_form_of_it() {
        for forms in [
            &["order", "orders", "ordered", "ordering"][..],
            &["create", "creates", "created", "creating", "creation"],
            &["delete", "deleted", "deletion"],
            &["query", "queries", "querying"],
            &["list", "lists", "listing"],
            &["issue", "issues"],
            &["address", "addresses"],
            &["box", "boxes"],
            &["plan", "planned", "planning"],
            &["bill", "bills", "billing", "billed"],
            &["process", "processes", "processing"],
            &["search", "searches", "searching"],
        ] {
            for form in forms {
                assert_eq!(stem(form), stem(forms[0]), "{form}");
            }
        }
        for apart in ["status", "analysis", "news", "id", "ids", "s3", "ring", "feed", "need"] {
            assert!(!stem(apart).is_empty());
        }
        assert_eq!(&*stem("status"), "status");
        assert_ne!(stem("ring"), stem("r"));
    }

    #[test]
    fn camel_kebab_snake_and_acronyms_split() {
        assert_eq!(words("listOpenOrders"), ["listopenorder", "list", "open", "order"]);
        assert_eq!(words("list-open_orders.json"), ["list", "open", "order", "json"]);
        assert_eq!(words("HTTPServer"), ["httpserver", "http", "server"]);
        assert_eq!(words("customerID"), ["customerid", "customer", "id"]);
        assert_eq!(words("GitHub"), ["github", "git", "hub"]);
        assert_eq!(words("s3"), ["s3"]);
        assert_eq!(words("東京"), ["東京", "東", "京"]);
        assert_eq!(words(" \u{202e}-\u{0} "), Vec::<String>::new());
    }

    #[test]
    fn a_query_keeps_a_camel_word_whole_when_it_is_known_so() {
        let of = |query, known: &[&str]| -> Vec<String> {
            of_query(query, |w| known.contains(&w)).into_iter().map(String::from).collect()
        };
        assert_eq!(of("GitHub issues", &["github"]), ["github", "issu"]);
        assert_eq!(of("GitHub issues", &[]), ["git", "hub", "issu"]);
        assert_eq!(of("what are the orders", &[]), ["order"]);
        assert_eq!(of("what is it", &[]), ["what", "is", "it"]);
    }

    #[test]
    fn a_name_is_about_what_is_left_without_verbs_and_numbers() {
        let about = |vendor, name| -> Vec<String> {
            subject(vendor, name).into_iter().map(String::from).collect()
        };
        assert_eq!(about("shop", "list-open-orders"), ["open", "order", "shop"]);
        assert_eq!(about("tools", "events-3-find-events"), ["event"]);
        assert_eq!(about("tools", "get"), Vec::<String>::new());
    }

    #[test]
    fn long_text_is_bounded() {
        assert!(of_text(&"a ".repeat(100_000)).len() <= TEXT_BYTES_MAX);
        assert!(of_text(&"x".repeat(100_000))[0].len() <= WORD_MAX);
    }
}
