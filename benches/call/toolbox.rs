//! What grows with a toolbox: an agent's list, a search, a sweep. Each is held
//! against itself on a small one (P8, P9) or against reading the same rows once
//! (P10). The tools are operations of made-up OpenAPI documents, imported as a
//! person would import them.

use crate::figures::Row;
use crate::house::House;
use crate::{mcp_client, timed};
use cambium_engine::{ImportRequest, NewAgent, PersonCredential, PersonProof, ToolName};
use cambium_sandbox_tests::vendor::Vendor;
use serde_json::{Value, json};
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

const SMALL: usize = 100;
const MIDDLE: usize = 1_000;
const LARGE: usize = 100_000;
/// Operations of one document.
const DOCUMENT: usize = 5_000;
const PROMOTED: usize = 20;
const ROUNDS: usize = 5;
const LISTS: usize = 100;
const SEARCHES: usize = 200;
const AGENTS: usize = 10_000;
const MEMBERS: usize = 40;
const THINGS: [&str; 10] = [
    "invoice", "customer", "shipment", "ticket", "contract", "meeting", "release", "payment",
    "device", "report",
];
const ACTS: [&str; 5] = ["list", "get", "create", "update", "delete"];

pub(crate) async fn run(vendor: &Vendor) -> Value {
    let mut rows = Vec::new();
    let mut houses = Vec::new();
    for (tools, name) in [(SMALL, "hundred"), (MIDDLE, "thousand"), (LARGE, "large")] {
        let house = House::build(vendor, 0, name).await;
        let began = Instant::now();
        fill(&house, tools).await;
        eprintln!("{tools} tools imported in {:.1} s", began.elapsed().as_secs_f64());
        houses.push((tools, house));
    }
    let mut lists: Vec<Row> =
        houses.iter().map(|(tools, _)| Row::new(&format!("list, {tools} tools"))).collect();
    let mut searches: Vec<Row> =
        houses.iter().map(|(tools, _)| Row::new(&format!("search, {tools} tools"))).collect();
    for _ in 0..ROUNDS {
        for (at, (_, house)) in houses.iter().enumerate() {
            let cancel = CancellationToken::new();
            let address = house.serve(cancel.clone()).await;
            let client = mcp_client(address.port(), Some(&house.token)).await;
            let list = async || client.list_all_tools().await.expect("a list").len();
            let seen = |count: usize| assert!(count > PROMOTED, "{count} tools");
            lists[at].push(timed(LISTS, list, seen).await);
            let mut number = 0;
            let search = async || {
                number += 1;
                let (act, thing) = (ACTS[number % 5], THINGS[number % 10]);
                let query = format!("{act} {thing} of region {}", number % 97);
                house.engine.find_tool(&house.caller, &query).await.expect("an answer").hits.len()
            };
            searches[at].push(timed(SEARCHES, search, |_| {}).await);
            let _ = client.cancel().await;
            cancel.cancel();
        }
    }
    println!("| what | toolbox | p50 ms | p99 ms |\n|---|---|---|---|");
    for (what, of) in [("`tools/list`, 20 promoted", &lists), ("find_tool", &searches)] {
        for (row, (tools, _)) in of.iter().zip(&houses) {
            let (p50, p99) = (row.percentile(50.0) / 1000.0, row.percentile(99.0) / 1000.0);
            println!("| {what} | {tools} | {p50:.2} | {p99:.2} |");
            rows.push(row.json());
        }
    }
    let list_ratio = lists[2].percentile(50.0) / lists[0].percentile(50.0);
    let search_ratio = searches[2].percentile(99.0) / searches[1].percentile(99.0);
    println!("P8, list of 100,000 by list of 100: {list_ratio:.2}");
    println!("P9, p99 of a search of 100,000 by one of 1,000: {search_ratio:.2}");
    for (_, house) in houses {
        house.close().await;
    }
    let sweep = sweep(vendor).await;
    json!({ "rows": rows, "list_ratio": list_ratio, "search_ratio": search_ratio, "sweep": sweep })
}

/// Imports so many operations and promotes twenty of them.
pub(crate) async fn fill(house: &House, tools: usize) {
    let proof = person(house).await;
    for first in (0..tools).step_by(DOCUMENT) {
        let document = document(first, (tools - first).min(DOCUMENT));
        let request = ImportRequest {
            connection: "shop".into(),
            base_path: String::new(),
            operations: Vec::new(),
            promote_for: None,
            large: true,
        };
        let imported = house.engine.import_openapi(&proof, request, &document).await;
        let imported = imported.expect("an import").tools;
        assert!(imported.iter().all(|tool| tool.refused.is_none()), "{:?}", imported[0]);
        if first == 0 {
            for tool in imported.iter().take(PROMOTED) {
                let name = tool.tool.as_deref().and_then(|name| ToolName::parse(name).ok());
                let promoted = house.engine.promote(&house.caller, &name.expect("a name")).await;
                promoted.expect("a promotion");
            }
        }
    }
}

async fn person(house: &House) -> PersonProof {
    let code = house.engine.issue_code().await.expect("a code");
    house.engine.prove_person(PersonCredential::Code(code)).await.expect("a person")
}

fn document(first: usize, count: usize) -> Vec<u8> {
    let mut paths = serde_json::Map::new();
    for number in first..first + count {
        let (act, thing) = (ACTS[number % 5], THINGS[number / 5 % 10]);
        let region = number / 50;
        let method = match act {
            "create" => "post",
            "update" => "put",
            "delete" => "delete",
            _ => "get",
        };
        let operation = json!({
            "operationId": format!("{act}-{thing}-{region}"),
            "summary": format!("{act} the {thing} of region {region}"),
            "parameters": [{ "name": "limit", "in": "query", "schema": { "type": "integer" } }],
            "responses": { "200": { "description": "done" } },
        });
        paths.insert(format!("/{act}/{thing}/{region}"), json!({ method: operation }));
    }
    let info = json!({ "title": "Regions", "version": "1" });
    json!({ "openapi": "3.1.0", "info": info, "paths": paths }).to_string().into_bytes()
}

/// The rule over ten thousand sets of forty, against one full read of them.
async fn sweep(vendor: &Vendor) -> Value {
    let house = House::build(vendor, 0, "sweep").await;
    let proof = person(&house).await;
    let began = Instant::now();
    for number in 0..AGENTS {
        let new = NewAgent { name: format!("agent-{number}"), cap: 100, idle_days: 21 };
        house.engine.create_agent(&proof, new).await.expect("an agent");
    }
    eprintln!("{AGENTS} agents made in {:.1} s", began.elapsed().as_secs_f64());
    let options = SqliteConnectOptions::new().filename(house.database());
    let database = SqlitePool::connect_with(options).await.expect("the database");
    // Which tools are in a set is no row the ledger seals.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = i64::try_from(now.expect("a clock").as_millis()).expect("a time");
    let filled = sqlx::query(
        "WITH RECURSIVE tools (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM tools WHERE n < $1)
        INSERT INTO members (agent_id, tool, person_id, promoted, cause, promoted_ms)
        SELECT agent_id, 'shop__tool-' || n, person_id, 1, 'agent', $2 FROM agents, tools
        WHERE name LIKE 'agent-%'",
    );
    let filled = filled.bind(MEMBERS as i64 - 1).bind(now).execute(&database).await;
    assert_eq!(filled.expect("members").rows_affected() as usize, AGENTS * MEMBERS);
    let (mut sweeps, mut reads) = (Row::new("sweep"), Row::new("one full read"));
    for _ in 0..ROUNDS {
        let swept = async || house.engine.sweep().await.expect("a sweep");
        sweeps.push(timed(1, swept, |moved| assert_eq!(moved, 0)).await);
        let read = async || {
            let all = "SELECT agent_id, tool, cause, promoted_ms, last_used_ms FROM members
                WHERE promoted = 1 ORDER BY agent_id, tool";
            let rows = sqlx::query(all).fetch_all(&database).await.expect("the rows");
            let texts = rows
                .iter()
                .map(|row| row.get::<String, _>(0).len() + row.get::<String, _>(1).len());
            (rows.len(), texts.sum::<usize>())
        };
        reads.push(timed(1, read, |(count, _)| assert!(count >= AGENTS * MEMBERS)).await);
    }
    let ratio = sweeps.percentile(50.0) / reads.percentile(50.0);
    println!(
        "P10, sweep of {AGENTS} agents of {MEMBERS} tools: {:.0} ms, one full read of the rows {:.0} ms, {ratio:.2}",
        sweeps.percentile(50.0) / 1000.0,
        reads.percentile(50.0) / 1000.0,
    );
    database.close().await;
    house.close().await;
    json!({ "rows": [sweeps.json(), reads.json()], "ratio": ratio })
}
