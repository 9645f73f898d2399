//! Walks the chains: every node's, through the segments that stand for rows
//! that were let go, and against the anchors a person kept.

use super::{Anchor, AuditSink, chain, hex};
use crate::Vault;
use serde::Serialize;
use std::collections::BTreeSet;

/// Rows read at a time.
const PAGE: u32 = 500;

/// A chain that holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedChain {
    /// Which node's.
    pub node: String,
    /// Number of its last row.
    pub rows: u64,
    /// How many of them were let go and are stood for by segments.
    pub let_go: u64,
    /// Anchors it was held against.
    pub anchors: u64,
}

/// The first thing that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditBreak {
    /// Whose chain.
    pub node: String,
    /// The row's number.
    pub row: u64,
    /// What is wrong.
    pub reason: String,
}

/// Walks every chain there is, and those of the anchors.
pub(crate) async fn verify(
    vault: &Vault,
    sink: &dyn AuditSink,
    anchors: &[Anchor],
) -> Result<Vec<VerifiedChain>, AuditBreak> {
    let unread = |fault: crate::StoreFault| AuditBreak {
        node: String::new(),
        row: 1,
        reason: fault.to_string(),
    };
    let mut nodes: BTreeSet<String> = sink.nodes().await.map_err(unread)?.into_iter().collect();
    nodes.extend(anchors.iter().map(|anchor| anchor.node.clone()));
    let mut verified = Vec::with_capacity(nodes.len());
    for node in nodes {
        let mine: Vec<&Anchor> = anchors.iter().filter(|anchor| anchor.node == node).collect();
        let walked = walk(vault, sink, &node, &mine).await;
        verified.push(walked.map_err(|(row, reason)| AuditBreak { node, row, reason })?);
    }
    Ok(verified)
}

async fn walk(
    vault: &Vault,
    sink: &dyn AuditSink,
    node: &str,
    anchors: &[&Anchor],
) -> Result<VerifiedChain, (u64, String)> {
    for anchor in anchors {
        if !anchor.holds(vault) {
            let why = format!(
                "the anchor of row {} was not made here: its MAC does not hold",
                anchor.rows
            );
            return Err((anchor.rows, why));
        }
    }
    let anchored = |row: u64, hash: &[u8]| {
        let hash = hex(hash);
        match anchors.iter().find(|anchor| anchor.rows == row && anchor.hash != hash) {
            None => Ok(()),
            Some(_) => Err((row, format!("row {row} is another than was anchored"))),
        }
    };
    let (mut last, mut hash) = (0, vec![0; 32]);
    let segments = sink.segments(node).await.map_err(|fault| (1, fault.to_string()))?;
    for segment in segments {
        let expected = last + 1;
        if !segment.holds(vault) || segment.node != node {
            let why = format!("the segment of row {expected} was not written here");
            return Err((expected, why));
        }
        if segment.first != expected || segment.last < expected || segment.previous != hash {
            let why = format!("the segment from row {} does not follow row {last}", segment.first);
            return Err((expected, why));
        }
        (last, hash) = (segment.last, segment.hash);
        anchored(last, &hash)?;
    }
    let let_go = last;
    loop {
        let page = sink.rows(node, last, PAGE).await;
        let page = page.map_err(|fault| (last + 1, fault.to_string()))?;
        if page.is_empty() {
            break;
        }
        for row in page {
            let expected = last + 1;
            if row.sequence != expected || row.node != node {
                let found = row.sequence;
                let why = format!("row {expected} is missing; row {found} stands there");
                return Err((expected, why));
            }
            if row.previous != hash {
                return Err((expected, format!("row {expected} does not follow the row before")));
            }
            chain::check(vault, &row).map_err(|why| (expected, why))?;
            anchored(expected, &row.hash)?;
            (last, hash) = (expected, row.hash);
        }
    }
    if let Some(anchor) = anchors.iter().find(|anchor| anchor.rows > last) {
        let (rows, at) = (anchor.rows, anchor.at_ms);
        let why = format!("the chain ends at row {last}, and {rows} rows were anchored at {at}");
        return Err((last + 1, why));
    }
    let anchors = anchors.len() as u64;
    Ok(VerifiedChain { node: node.to_owned(), rows: last, let_go, anchors })
}
