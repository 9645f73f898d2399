//! `cambium sweep`, with or without `--plan`: what the rule would take out, and when.

use super::print::{field, table, time};
use super::{Context, Said};
use crate::control::Request;
use crate::failure::Failure;
use serde_json::Value;

/// Arguments of `cambium sweep`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only show, which is all there is: the server sweeps by itself every five minutes
    #[arg(long)]
    plan: bool,
}

impl Args {
    /// Asks the running server.
    pub(crate) async fn run(self, context: &Context) -> Result<Said, Failure> {
        let _ = self.plan;
        let plans = context.ask(&Request::SweepPlan {}).await?;
        Ok(Said::new(shown(&plans), plans))
    }
}

fn shown(plans: &Value) -> String {
    let mut rows = Vec::new();
    for plan in plans.as_array().into_iter().flatten() {
        for leaving in plan["leaving"].as_array().into_iter().flatten() {
            let tool = &leaving["tool"];
            rows.push(vec![
                field(plan, "agentName"),
                format!("{}__{}", field(tool, "vendor"), field(tool, "name")),
                if leaving["now"] == true {
                    "at the next sweep".into()
                } else {
                    format!("after {}", time(&leaving["afterMs"]))
                },
                match leaving["cause"].as_str() {
                    Some("cap") => "over the working-set cap".into(),
                    _ => "if unused until then".into(),
                },
            ]);
        }
    }
    table(&["AGENT", "TOOL", "LEAVES", "WHY"], &rows, "no tool is promoted for any agent")
}
