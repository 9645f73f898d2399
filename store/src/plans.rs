//! Every read on a call's path goes by an index: asked of the database itself.
#![allow(clippy::unwrap_used)]

use crate::{
    Store, agents, asks, audit, authoring, connections, decisions, documents, people, proposals,
    runs, secrets, sets, tools, workspace,
};
use sqlx::{AssertSqlSafe, Row};

#[tokio::test]
async fn no_hot_read_scans_a_table() {
    let store = Store::in_memory().await.unwrap();
    let mut on = store.read().await.unwrap();
    for statement in [
        people::CODE,
        people::SESSION,
        agents::AGENT,
        agents::OF_TOKEN,
        connections::BY_ID,
        connections::FIND,
        connections::SCOPE,
        connections::SCOPE_CHANGE,
        connections::LEAVING,
        authoring::JOB,
        authoring::LINES,
        documents::DOCUMENT,
        secrets::SECRET,
        tools::POINTER,
        tools::POINTERS,
        tools::VERSION,
        tools::NEWEST,
        tools::HOLDERS,
        workspace::CONTENT,
        workspace::PATHS,
        tools::FILE,
        sets::SET,
        sets::SIZE,
        sets::HISTORY,
        asks::OPEN_OF,
        asks::OPEN,
        asks::SETTLED,
        asks::COUNT,
        asks::EXPIRED,
        decisions::STANDING,
        decisions::DENIED_ELSEWHERE,
        decisions::ANSWER,
        decisions::UNUSED,
        decisions::UNUSED_OF,
        decisions::UNUSED_ON,
        decisions::USED,
        decisions::NEWEST,
        decisions::STANDING_ON,
        proposals::SAME,
        proposals::OPEN,
        proposals::SETTLED,
        runs::RUN,
        runs::NEWEST,
        runs::LASTING,
        runs::RESULT,
        audit::LAST,
        audit::ROWS,
        audit::NEXT_NODE,
        audit::SEGMENTS,
    ] {
        let mut query = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}")));
        for _ in 0..(1..=9).filter(|at| statement.contains(&format!("${at}"))).count() {
            query = query.bind("x");
        }
        let plan = query.fetch_all(&mut *on).await.unwrap();
        let steps: Vec<String> = plan.iter().map(|row| row.get("detail")).collect();
        assert!(!steps.is_empty());
        assert!(!steps.iter().any(|step| step.starts_with("SCAN")), "{statement}\n{steps:#?}");
    }
}
