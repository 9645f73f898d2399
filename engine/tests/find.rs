//! Finding a tool, behaviours 14 to 20, as tables over a small toolbox.
#![allow(clippy::unwrap_used)]

use cambium_engine::{Document, Findings, Index, ToolName};
use serde_json::{Value, json};

const TOOLS: &[(&str, &str, &str)] = &[
    ("github", "list-issues", "Lists the open issues of a repository."),
    ("github", "create-issue", "Creates an issue in a repository."),
    ("github", "list-pull-requests", "Lists pull requests, newest first."),
    ("github", "delete-branch", "Deletes a branch."),
    ("linear", "list-issues", "Lists the issues of a team."),
    ("linear", "create-issue", "Opens a new issue for a team."),
    ("shop", "list-orders", "Lists the open orders of one customer."),
    ("shop", "refund-order", "Pays an order back to its customer."),
    ("google-maps", "geocode", "Turns an address into coordinates."),
    ("google-drive", "list-files", "Lists files of a folder."),
    ("slack", "notify-github", "Posts a GitHub event to a channel."),
    ("stats", "regression", "Fits a linear regression to points."),
];

fn tool(vendor: &str, name: &str) -> ToolName {
    ToolName::new(vendor, name).unwrap()
}

fn add(index: &mut Index, name: &ToolName, description: &str, input_schema: &Value) {
    index.upsert(Document { tool: name, title: None, description, input_schema });
}

fn toolbox() -> Index {
    let mut index = Index::default();
    for (vendor, name, description) in TOOLS {
        let schema = match *name {
            "list-orders" => json!({"type": "object", "properties": {
                "customerId": {"type": "string", "description": "Who placed them"},
                "filter": {"type": "object", "properties": {"warehouse": {"type": "string"}}},
            }}),
            _ => json!({"type": "object"}),
        };
        add(&mut index, &tool(vendor, name), description, &schema);
    }
    index
}

fn names(found: &Findings) -> Vec<String> {
    found.hits.iter().map(|hit| hit.tool.to_string()).collect()
}

#[test]
fn b014_searches_vendor_name_description_and_schema_without_case() {
    let index = toolbox();
    for (query, first) in [
        ("geocode", "google-maps__geocode"),
        ("COORDINATES", "google-maps__geocode"),
        ("maps", "google-maps__geocode"),
        ("coordinates of an address", "google-maps__geocode"),
        ("customer id", "shop__list-orders"),
        ("customerId", "shop__list-orders"),
        ("customer_id", "shop__list-orders"),
        ("who placed them", "shop__list-orders"),
        ("warehouse", "shop__list-orders"),
        ("deleting branches", "github__delete-branch"),
        ("refunded orders", "shop__refund-order"),
        ("shop__refund-order", "shop__refund-order"),
        ("fits points", "stats__regression"),
    ] {
        let found = index.search(query);
        assert_eq!(names(&found).first().map(String::as_str), Some(first), "{query}");
    }
}

#[test]
fn b015_a_hit_says_when_it_matched_only_partly() {
    let found = toolbox().search("refund orders by courier");
    assert_eq!(names(&found)[0], "shop__refund-order");
    assert!(found.hits.iter().all(|hit| hit.partial));
    let found = toolbox().search("refund order");
    assert!(!found.hits[0].partial);
}

#[test]
fn b016_nothing_matches_is_reachable() {
    let index = toolbox();
    for query in [
        "",
        "   ",
        "!!!",
        "weather forecast in Boston tomorrow",
        "list the planets orbiting a distant star",
        "translate a poem into Finnish",
        "\u{0}\u{202e}",
    ] {
        let found = index.search(query);
        assert_eq!((found.hits, found.total, found.more), (vec![], 0, vec![]), "{query:?}");
    }
    assert_eq!(Index::default().search("anything"), Findings::default());
}

#[test]
fn b016_what_comes_nearest_is_named_when_nothing_matches_and_only_then() {
    let index = toolbox();
    let nearest = |query: &str| -> Vec<String> {
        index.search(query).nearest.iter().map(ToString::to_string).collect()
    };
    // One word of many, of one tool's schema.
    assert_eq!(nearest("rent a warehouse for my paintings"), ["shop__list-orders"]);
    assert_eq!(nearest("translate a poem into Finnish"), [""; 0]);
    assert_eq!(nearest("refund"), [""; 0], "it matches");
    assert_eq!(nearest("github"), [""; 0], "a vendor is listed");
    // A search leaves nothing behind for the next, of this index or of another.
    let again = index.search("coordinates");
    assert_eq!(Index::default().search("coordinates"), Findings::default());
    assert_eq!(index.search("coordinates"), again);
    let mut many = Index::default();
    for number in 0..9 {
        let name = tool("shop", &format!("count-{number}"));
        add(&mut many, &name, "Counts crates in a warehouse.", &json!({}));
    }
    assert_eq!(names(&many.search("warehouse")).len(), 9);
    assert_eq!(names(&index.search("coordinates")), ["google-maps__geocode"]);
}

#[test]
fn b017_a_republish_replaces_and_a_removal_forgets() {
    let mut index = toolbox();
    let before = index.len();
    let name = tool("shop", "list-orders");
    add(&mut index, &name, "Lists shipments.", &json!({"type": "object"}));
    assert_eq!(index.len(), before);
    assert_eq!(names(&index.search("shipments")), ["shop__list-orders"]);
    assert_eq!(index.search("warehouse").total, 0);
    assert_eq!(names(&index.search("orders shop")).len(), 2);
    index.remove(&name);
    index.remove(&name);
    assert_eq!(index.search("shipments").total, 0);
    assert_eq!(index.len(), before - 1);
    for (vendor, name, _) in TOOLS {
        index.remove(&tool(vendor, name));
    }
    assert!(index.is_empty());
    assert_eq!(index.search("github"), Findings::default());
    // Slots are used again, and nothing of their old words is left.
    add(&mut index, &tool("mail", "send"), "Sends a letter.", &json!({}));
    assert_eq!(index.search("issues").total, 0);
    assert_eq!(names(&index.search("send letter")), ["mail__send"]);
}

#[test]
fn b018_all_words_first_then_partial_ten_and_the_total() {
    let index = toolbox();
    let found = index.search("list issues of a team");
    assert_eq!(names(&found)[0], "linear__list-issues");
    assert!(!found.hits[0].partial);
    assert!(found.hits[1..].iter().all(|hit| hit.partial));
    // A sentence finds its tool although most words are nowhere.
    let found = index.search("Could you please show me which orders this customer still has open?");
    assert_eq!(names(&found)[0], "shop__list-orders");

    let mut index = Index::default();
    for at in 0..37 {
        add(&mut index, &tool("v", &format!("ping-{at}")), "Pings a host.", &json!({}));
    }
    let found = index.search("ping a host");
    assert_eq!((found.hits.len(), found.total), (10, 37));
    // Equal scores go by name, so the answer is the same from call to call.
    assert_eq!(found, index.search("ping a host"));
    assert!(found.hits.is_sorted_by_key(|hit| hit.tool.to_string()));
}

#[test]
fn b018_a_name_weighs_more_than_a_description() {
    let mut index = Index::default();
    add(&mut index, &tool("a", "export"), "Writes a file.", &json!({}));
    add(&mut index, &tool("b", "other"), "Has an export somewhere in it.", &json!({}));
    assert_eq!(names(&index.search("export")), ["a__export", "b__other"]);
}

#[test]
fn b019_a_vendor_word_narrows() {
    let index = toolbox();
    let found = index.search("github list issues");
    assert_eq!(names(&found)[0], "github__list-issues");
    assert!(!names(&found).contains(&"linear__list-issues".to_owned()));
    assert!(!names(&found).contains(&"github__delete-branch".to_owned()));
    assert_eq!(names(&index.search("GitHub delete a branch"))[0], "github__delete-branch");
    // A vendor's word that is also a word: the vendor has nothing, others do.
    assert_eq!(names(&index.search("linear regression")), ["stats__regression"]);
    // Half a vendor's name still finds its tools.
    let found = index.search("google");
    assert_eq!(names(&found), ["google-drive__list-files", "google-maps__geocode"]);
}

#[test]
fn decision20_a_vendor_alone_lists_every_name_after_ten() {
    let mut index = toolbox();
    for at in 10..35 {
        add(&mut index, &tool("github", &format!("op-{at}")), "Does it.", &json!({}));
    }
    for query in ["github", "GitHub", "what can GitHub do"] {
        let found = index.search(query);
        assert_eq!(found.hits.len(), 10, "{query}");
        assert_eq!(found.more.len(), 19);
        assert_eq!(found.total, 30, "29 of the vendor and one that speaks of it");
        let all: Vec<String> =
            names(&found).into_iter().chain(found.more.iter().map(ToString::to_string)).collect();
        assert!(all.is_sorted());
        assert!(all.iter().all(|name| name.starts_with("github__")));
    }
    let found = index.search("linear");
    assert_eq!(names(&found), ["linear__create-issue", "linear__list-issues", "stats__regression"]);
    assert_eq!(found.more, []);
}

#[test]
fn hostile_text_is_bounded_and_never_a_panic() {
    let mut index = toolbox();
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"deeper": deep}});
    }
    let name = tool("x", "y");
    add(&mut index, &name, &"word ".repeat(50_000), &deep);
    let many: serde_json::Map<String, Value> =
        (0..20_000).map(|at| (format!("p{at}"), json!({"description": "text"}))).collect();
    add(&mut index, &name, "ok", &json!({"properties": many}));
    for schema in
        [json!(null), json!([]), json!({"properties": []}), json!({"properties": {"a": 1}})]
    {
        add(&mut index, &name, "ok", &schema);
    }
    let long = "é".repeat(5_000) + " orders";
    let words: String = (0..500).map(|at| format!("w{at} ")).collect();
    for query in
        [long.as_str(), &words, "a\u{301}\u{1f600} İstanbul ǅ", "orders ".repeat(900).as_str()]
    {
        index.search(query);
    }
}

#[test]
fn a_hundred_thousand_tools_answer_and_change_in_place() {
    let mut index = Index::default();
    let (verbs, nouns) =
        (["list", "get", "create", "update", "delete"], ["order", "invoice", "user", "file"]);
    for at in 0..100_000usize {
        let name = format!("{}-{}-{at}", verbs[at % 5], nouns[at / 5 % 4]);
        let text = format!("Handles the {} of account {}.", nouns[at / 5 % 4], at % 977);
        add(&mut index, &tool(&format!("vendor{}", at % 300), &name), &text, &json!({}));
    }
    assert_eq!(index.len(), 100_000);
    let found = index.search("list order of an account");
    assert!(found.total > 0 && found.hits.len() == 10);
    let found = index.search("vendor7 delete invoice");
    assert!(found.hits.iter().all(|hit| hit.tool.vendor() == "vendor7"));
    index.remove(&found.hits[0].tool);
    assert_eq!(index.len(), 99_999);
    assert!(
        index.search("vendor7 delete invoice").hits.iter().all(|h| h.tool != found.hits[0].tool)
    );
}
