//! What is measured, as medians and percentiles over rounds, printed as
//! Markdown and written as JSON.

use serde_json::{Value, json};

/// Times of one row, microseconds: one list a round.
#[derive(Default)]
pub(crate) struct Row {
    /// What it is.
    pub(crate) name: String,
    rounds: Vec<Vec<f64>>,
}

impl Row {
    /// An empty row.
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.into(), rounds: Vec::new() }
    }

    /// Adds a round.
    pub(crate) fn push(&mut self, mut times: Vec<f64>) {
        times.sort_by(f64::total_cmp);
        self.rounds.push(times);
    }

    /// The median over the rounds of a percentile within each.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let mut each: Vec<f64> = self.rounds.iter().map(|round| at(round, percent)).collect();
        each.sort_by(f64::total_cmp);
        at(&each, 50.0)
    }

    /// Calls in all rounds.
    pub(crate) fn calls(&self) -> usize {
        self.rounds.iter().map(Vec::len).sum()
    }

    /// As JSON, microseconds.
    pub(crate) fn json(&self) -> Value {
        json!({
            "name": self.name, "rounds": self.rounds.len(), "calls": self.calls(),
            "p50_us": self.percentile(50.0), "p99_us": self.percentile(99.0),
        })
    }
}

fn at(sorted: &[f64], percent: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let index = ((last as f64) * percent / 100.0).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

/// The table, ratios against the first row.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| row | calls | p50 ms | p99 ms | ours (first row) as a share of its p50 | of its p99 |\n|---|---|---|---|---|---|\n",
    );
    let ours = |percent| rows.first().map_or(f64::NAN, |row| row.percentile(percent));
    for row in rows {
        let (p50, p99) = (row.percentile(50.0), row.percentile(99.0));
        out += &format!(
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.2} |\n",
            row.name,
            row.calls(),
            p50 / 1000.0,
            p99 / 1000.0,
            ours(50.0) / p50,
            ours(99.0) / p99
        );
    }
    out
}
